"""SQL alone says that a query is followed only if the compiler follows it."""

from __future__ import annotations

import psycopg
import pytest

from tests.corpus.asked import FILES, QUERIES, queries_of
from tests.corpus.test_shares import RECOMPUTED, Corpus, corpus
from tests.fixtures.databases import APP

__all__ = ["corpus"]

pytestmark = pytest.mark.on_postgres(18)


def mode_of(connection: psycopg.Connection, query: str) -> str | None:
    """What SQL alone says about a query; None if PostgreSQL does not take it."""
    with connection.transaction(force_rollback=True):
        connection.execute(f"set local role {APP}")
        try:
            with connection.transaction():
                connection.execute(f"create temporary view asked as {query}")
        except psycopg.Error:
            return None
        row = connection.execute(
            "select mode from pgtrickle_internal.mode_of('pg_temp.asked'::regclass)"
        ).fetchone()
        assert row is not None
        return str(row[0])


@pytest.mark.parametrize("file", FILES)
def test_what_sql_calls_differential_is_followed(file: str, corpus: Corpus, admin) -> None:
    modes = {name: mode_of(admin, query) for name, query in queries_of(file).items()}
    claimed = [name for name, mode in modes.items() if mode == "DIFFERENTIAL"]
    # what cannot be created is refused by PostgreSQL or by create_stream_table, which validate_query asks too
    assert [name for name in claimed if corpus.fate(QUERIES[name])[0] == RECOMPUTED] == []


def test_sql_alone_decides_plain_queries(admin) -> None:
    queries = [
        "select id, name from people",
        "select p.name, count(*), sum(p.id) from people p group by p.name having count(*) > 1",
        "select p.id, o.id as other from people p left join people o on o.id = p.id + 1",
        "select id from people union select id from people where name like 'a%'",
        "select distinct name from people",
    ]
    assert {mode_of(admin, query) for query in queries} == {"DIFFERENTIAL"}
