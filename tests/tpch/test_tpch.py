"""All 22 queries of TPC-H follow their sources differentially, whatever happens to all eight tables."""

from __future__ import annotations

import psycopg
import pytest

from tests.fixtures.stream_tables import StreamTables
from tests.tpch.answers import assert_answers, rows_of
from tests.tpch.conftest import SCALE
from tests.tpch.harsh import harsh
from tests.tpch.loading import TABLES
from tests.tpch.published import NAMES, query

CYCLES = 3


def change(app: psycopg.Connection, cycle: int) -> None:
    for transaction in harsh(cycle):
        with app.transaction():
            for statement in transaction:
                app.execute(statement)


@pytest.mark.parametrize("name", NAMES)
def test_the_query_is_followed_differentially(
    name: str, stream_table: StreamTables, app: psycopg.Connection, admin: psycopg.Connection
) -> None:
    asked = query(name, SCALE)
    table = stream_table(asked.text, name=name, mode="DIFFERENTIAL", loads=False)
    table.refresh()
    assert_answers(app, name, asked)
    for cycle in range(CYCLES):
        change(app, cycle)
        table.refresh()
        assert_answers(app, name, asked)
    recorded = admin.execute(
        "select h.action from pgtrickle.pgt_refresh_history h join pgtrickle.pgt_stream_tables using (pgt_id)"
        " where pgt_name = %s order by h.refresh_id",
        (name,),
    ).fetchall()
    assert [action for (action,) in recorded] == ["REINITIALIZE"] + ["DIFFERENTIAL"] * CYCLES


def test_every_cycle_moves_every_answer(app: psycopg.Connection) -> None:
    """Otherwise the tests above would compare little."""
    queries = [query(name, SCALE) for name in NAMES]
    before = {asked.name: rows_of(app, asked.text) for asked in queries}
    for cycle in range(CYCLES):
        change(app, cycle)
        after = {asked.name: rows_of(app, asked.text) for asked in queries}
        assert [name for name in NAMES if after[name] == before[name]] == []
        before = after


def test_every_cycle_inserts_updates_and_deletes_in_every_table(
    app: psycopg.Connection, admin: psycopg.Connection
) -> None:
    seen = "select n_tup_ins, n_tup_upd, n_tup_del from pg_stat_user_tables where relname = %s"
    for cycle in range(CYCLES):
        app.execute("select pg_stat_force_next_flush()")
        counts = {table: admin.execute(seen, (table,)).fetchone() for table in TABLES}
        change(app, cycle)
        app.execute("select pg_stat_force_next_flush()")
        for table in TABLES:
            was, now = counts[table], admin.execute(seen, (table,)).fetchone()
            assert was is not None
            assert now is not None
            assert all(after > before for before, after in zip(was, now, strict=True)), (
                cycle,
                table,
                was,
                now,
            )
