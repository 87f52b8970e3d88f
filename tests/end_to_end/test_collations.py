"""Values keep their collation wherever PostgreSQL computes with them: order, comparisons, state."""

from __future__ import annotations

import pytest

from tests.fixtures.servers import SYSTEM

# the embedded server has no ICU, and test databases have the order of bytes by default
pytestmark = pytest.mark.on_postgres(SYSTEM)

ENGLISH = 'collate "en-x-icu"'
FIRST_ROWS = (
    "select id, s from t order by s, id limit 3",
    "select id, s from t order by s desc, id limit 3",
    f"select id, p from t order by p {ENGLISH}, id limit 3",
    "select id, p from t order by p, id offset 1 limit 3",
    "select s, count(*) as n from t group by s order by s limit 3",
)
GROUPS = (
    "select s, count(*) as n, s < 'B' as is_early from t group by s",
    "select s, string_agg(id::text, ',' order by id) as ids, s < 'B' as is_early from t group by s",
    "select s, string_agg(id::text, ',' order by id) as ids from t group by s having s < max('B' || s)",
    "select distinct s, s < 'B' as is_early from t",
    f"select p {ENGLISH} as q, count(*) as n, p {ENGLISH} < 'B' as is_early from t group by p {ENGLISH}",
    "select g, max(s) as last, min(p) as first, max(s) < 'B' as is_early from t group by g",
    "select a, count(*) as n, a < array['B'] as is_early from (select array[s] as a from t) as x group by a",
)


@pytest.mark.parametrize("queries", [FIRST_ROWS, GROUPS], ids=["first rows", "groups"])
def test_another_collation_than_the_default_decides_order_and_comparisons(queries, source, followed):
    """In English order a < b < B < c, by bytes all capitals come first."""
    source(f't(id int primary key, s text {ENGLISH}, p text collate "C", g int)')
    tables = followed(*queries)
    tables.after(
        "insert into t values (1, 'a', 'a', 1), (2, 'B', 'B', 1), (3, 'c', 'c', 2), (4, 'D', 'D', 2)"
    )
    tables.after("insert into t values (5, 'b', 'b', 1), (6, 'A', 'A', 2)")
    tables.after("delete from t where id = 1", "update t set s = 'e', p = 'E' where id = 6")
    tables.after(
        "insert into t select 100 + i, chr(65 + i), chr(97 + i), i % 3 from generate_series(0, 25) i",
        "delete from t where id in (2, 3)",
    )
    tables.after("delete from t where id between 100 and 103", "update t set g = null where id = 104")
