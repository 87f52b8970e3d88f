"""The changes are worth following: they reach every table, every kind of statement and every answer."""

from __future__ import annotations

from collections.abc import Mapping

import psycopg
import pytest

from tests.tpch.answers import rows_of
from tests.tpch.conftest import SCALE
from tests.tpch.harsh import CYCLES, change_harshly
from tests.tpch.loading import TABLES
from tests.tpch.plain import PlainChanges
from tests.tpch.published import NAMES, query

pytestmark = pytest.mark.slow

REFERENCES = {
    "nation": "n_regionkey from nation except select r_regionkey from region",
    "supplier": "s_nationkey from supplier except select n_nationkey from nation",
    "customer": "c_nationkey from customer except select n_nationkey from nation",
    "partsupp": "ps_partkey, ps_suppkey from partsupp except select p_partkey, s_suppkey from part, supplier",
    "orders": "o_custkey from orders except select c_custkey from customer",
    "lineitem": "l_orderkey from lineitem except select o_orderkey from orders",
    "parts of lineitem": "l_partkey from lineitem except select p_partkey from part",
}
Written = Mapping[str, tuple[int, int, int]]


def written(connection: psycopg.Connection) -> Written:
    """Rows inserted, updated and deleted so far, by table."""
    connection.execute("select pg_stat_force_next_flush()")
    connection.execute("select pg_stat_clear_snapshot()")
    rows = connection.execute("select relname, n_tup_ins, n_tup_upd, n_tup_del from pg_stat_user_tables")
    return {row[0]: row[1:] for row in rows if row[0] in TABLES}


def between(before: Written, after: Written) -> Written:
    return {
        table: tuple(now - was for was, now in zip(before[table], after[table], strict=True))  # type: ignore[misc]
        for table in TABLES
    }


def test_every_harsh_cycle_moves_every_answer(app: psycopg.Connection) -> None:
    queries = [query(name, SCALE) for name in NAMES]
    before = {asked.name: rows_of(app, asked.text) for asked in queries}
    for cycle in range(CYCLES):
        change_harshly(app, cycle)
        after = {asked.name: rows_of(app, asked.text) for asked in queries}
        assert [name for name in NAMES if after[name] == before[name]] == []
        before = after


def test_every_harsh_cycle_inserts_updates_and_deletes_in_every_table(app: psycopg.Connection) -> None:
    for cycle in range(CYCLES):
        before = written(app)
        change_harshly(app, cycle)
        for table, counts in between(before, written(app)).items():
            assert all(counts), (cycle, table, counts)


def test_plain_changes_are_as_many_as_asked_for_in_every_table(app: psycopg.Connection) -> None:
    changes = PlainChanges(app)
    changes.make(1_000)
    before = written(app)
    changes.make(1_000)
    counts = between(before, written(app))
    assert sum(map(sum, counts.values())) == 1_000
    assert all(all(kinds) for kinds in counts.values()), counts


def test_plain_changes_leave_nothing_dangling(app: psycopg.Connection) -> None:
    changes = PlainChanges(app)
    for _ in range(3):
        changes.make(1_000)
    dangling = {name: app.execute(f"select {text}").fetchall() for name, text in REFERENCES.items()}
    assert dangling == {name: [] for name in REFERENCES}
