"""A recursion whose rows the stream table holds is derived again only where a change reaches it."""

from __future__ import annotations

import random

import pytest

_STEP = "from r join edge e on e.a = r.b"
_REACHED = f"with recursive r(a, b) as (select a, b from edge union select r.a, e.b {_STEP}) select * from r"
_FROM_SEEDS = (
    "with recursive r(b) as (select n from seed union select e.b from r join edge e on e.a = r.b"
    " where not exists (select from closed c where c.n = e.b)) select b from r"
)
_ENDS = (
    "with recursive r(a, b, depth) as (select n, n, 0 from seed union all"
    " select r.a, e.b, r.depth + 1 from r left join edge e on e.a = r.b and e.b > r.b"
    " where r.depth < 4 and r.b is not null) select depth, b, a from r"
)
_PATHS = (
    f"with recursive r(a, b, path) as (select a, b, array[a, b] from edge where a < 3 union all"
    f" select r.a, e.b, r.path || e.b {_STEP} where e.b <> all (r.path)) select a, b, path from r"
)
_LABELS = (
    f"with recursive r(a, b, weight) as (select a, b, label from edge union"
    f" select r.a, e.b, e.label {_STEP} and e.label is not distinct from r.weight) select * from r"
)
_SPREAD = (
    "with recursive r(n, hops) as (select n, 0 from seed union all select x, r.hops + 1 from r"
    " join edge e on e.a = r.n cross join lateral generate_series(e.b, e.b + 1) x where r.hops < 3)"
    " select n, hops from r"
)
_QUERIES = (_REACHED, _FROM_SEEDS, _ENDS, _PATHS, _LABELS, _SPREAD)


@pytest.fixture
def graph(source):
    source("edge(a int, b int, label text)", rows=[(1, 2, "x"), (2, 3, None), (3, 1, "x"), (2, 3, None)])
    source("seed(n int)", rows=[(1,), (None,), (1,)])
    source("closed(n int)", rows=[(4,)])


def test_conflicting_changes_of_a_graph_with_cycles_nulls_and_duplicates_are_followed(graph, followed):
    drawn = random.Random(7)
    tables = followed(*_QUERIES)
    for _ in range(14):
        tables.after(*(_change(drawn) for _ in range(drawn.randint(1, 5))))
    tables.stand_still()


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(8))
def test_many_conflicting_changes_of_a_graph_are_followed(graph, followed, seed):
    drawn = random.Random(100 + seed)
    tables = followed(*_QUERIES)
    for _ in range(25):
        tables.after(*(_change(drawn) for _ in range(drawn.randint(1, 6))))


def _change(drawn: random.Random) -> str:
    node = lambda: drawn.choice(["1", "2", "3", "4", "5", "6", "null"])  # noqa: E731
    label = drawn.choice(["'x'", "'y'", "null"])
    statements = (
        f"insert into edge values ({node()}, {node()}, {label})",
        f"insert into edge values ({node()}, {node()}, {label}), ({node()}, {node()}, {label})",
        f"delete from edge where a = {node()}",
        "delete from edge where ctid = (select ctid from edge order by a, b, label limit 1)",
        f"update edge set b = {node()} where a = {node()}",
        f"update edge set a = {node()} where b = {node()}",
        f"update edge set label = {label} where a = {node()}",
        f"insert into seed values ({node()})",
        f"delete from seed where n = {node()}",
        f"insert into closed values ({node()})",
        f"delete from closed where n = {node()}",
    )
    return drawn.choice(statements)


def test_a_support_that_moves_onto_a_cycle_of_its_own_is_no_support(source, followed):
    source("edge(a int, b int)", rows=[(1, 2), (2, 3)])
    source("start(n int)", rows=[(1,)])
    tables = followed(
        "with recursive r(n) as (select n from start union select e.b from r join edge e on e.a = r.n)"
        " select n from r"
    )
    tables.after("delete from edge where a = 1", "insert into edge values (3, 2)")
    assert tables.tables[0].rows() == [(1,)]


def test_a_cycle_that_the_new_rows_close_out_of_reach_does_not_run_forever(source, followed):
    source("edge(a int, b int)", rows=[(1, 2), (2, 3)])
    source("start(n int)", rows=[(1,)])
    tables = followed(
        "with recursive r(n, depth) as (select n, 0 from start"
        " union all select e.b, depth + 1 from r join edge e on e.a = r.n) select n, depth from r",
        mode="AUTO",
    )
    tables.after("delete from edge where a = 1", "insert into edge values (3, 2)")


def test_a_table_named_like_our_columns_keeps_them_apart(source, followed):
    source('edge("weight" int, "times" int, "copies" int, "hash of the row" text)', rows=[(1, 2, 3, "h")])
    columns = 'weight, times, copies, "hash of the row"'
    tables = followed(
        f"with recursive r as (select {columns} from edge union all select e.weight, e.times, e.copies,"
        ' e."hash of the row" from r join edge e on e.weight = r.times) select * from r',
        f"with recursive r as (select {columns} from edge union select e.weight, e.times, e.copies,"
        ' e."hash of the row" from r join edge e on e.weight = r.times) select * from r',
    )
    tables.after(
        "insert into edge values (2, 3, null, null), (2, 3, null, null)", "delete from edge where weight = 1"
    )
    tables.after("insert into edge values (1, 2, 0, 'a')", "update edge set copies = 9 where weight = 2")
