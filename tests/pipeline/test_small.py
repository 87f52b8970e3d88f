"""A small window is one part without an exchange, planned once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pyarrow as pa
import pytest

from pgtrickle.model.errors import SparkFailed
from pgtrickle.pipeline.small import plan_small, run_small
from tests.pipeline.relations import CUSTOMERS, ORDERS, TOTALS, rows_of

EXPECTED = [
    ("", Decimal("3.50"), 1),
    ("north", Decimal("-1.00"), 1),
    (None, Decimal("1.25"), 1),
]


def physical_plan(capsys, frame) -> str:
    capsys.readouterr()
    frame.explain()
    return str(capsys.readouterr().out)


def test_joins_and_groups_weighted_rows(spark):
    rows = run_small(spark, TOTALS, {"o": ORDERS, "c": CUSTOMERS})
    assert rows.schema.names == ["region", "total", "weight"]
    assert rows_of(rows) == sorted(EXPECTED, key=repr)


def test_a_join_a_union_and_an_aggregate_need_no_exchange(spark, capsys):
    both = f"select region, sum(weight) as n from ({TOTALS} union all select region, 0, 1 from c) group by 1"
    plan = physical_plan(capsys, plan_small(spark.small, both, {"o": ORDERS, "c": CUSTOMERS}))
    assert "SortMergeJoin" in plan
    assert "Exchange" not in plan


def test_an_empty_input_is_planned_away(spark, capsys):
    inputs = {"o": ORDERS.slice(0, 0), "c": CUSTOMERS}
    assert run_small(spark, TOTALS, inputs).num_rows == 0
    assert "Join" not in physical_plan(capsys, plan_small(spark.small, TOTALS, inputs))


def test_nothing_in_keeps_the_types_of_what_comes_out(spark):
    full = run_small(spark, TOTALS, {"o": ORDERS, "c": CUSTOMERS})
    none = run_small(spark, TOTALS, {"o": ORDERS.slice(0, 0), "c": CUSTOMERS.slice(0, 0)})
    assert none.num_rows == 0
    assert none.schema.types == full.schema.types


def test_names_and_texts_may_hold_any_character(spark):
    odd = pa.table({"a`{b}": pa.array(["{x}"], pa.string()), "A`{B}": pa.array([1], pa.int64())})
    rows = run_small(spark, "select `a``{b}`, `A``{B}`, '{y}' as y from `t``{1}`", {"t`{1}": odd})
    assert rows_of(rows) == [("{x}", 1, "{y}")]


def test_a_program_may_begin_with_its_own_definitions(spark):
    rows = run_small(spark, "with n as (select count(*) as n from c) select n from n", {"c": CUSTOMERS})
    assert rows_of(rows) == [(3,)]


def test_programs_run_side_by_side(spark):
    def total(number: int) -> object:
        t = pa.table({"v": pa.array([number] * 10, pa.int64())})
        return run_small(spark, "select sum(v) as v from t", {"t": t})["v"][0].as_py()

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(total, range(8))) == [number * 10 for number in range(8)]


def test_overflow_is_an_error_and_not_another_number(spark):
    t = pa.table({"v": pa.array([2**62, 2**62], pa.int64())})
    with pytest.raises(SparkFailed, match="overflow"):
        run_small(spark, "select sum(v) as v from t", {"t": t})


def test_a_program_that_runs_again_sees_only_its_own_rows(spark):
    def total(*numbers: int) -> object:
        t, u = (pa.table({"v": pa.array(part, pa.int64())}) for part in (numbers, numbers[1:]))
        both = "select count(*) as n, sum(t.v) as v from t left join u on t.v = u.v where u.v is not null"
        return rows_of(run_small(spark, both, {"t": t, "u": u}))

    assert [total(*range(n)) for n in (3, 5, 2, 0, 4)] == [
        [(2, 3)],
        [(4, 10)],
        [(1, 1)],
        [(0, None)],
        [(3, 6)],
    ]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda n: total(*range(n)), range(2, 9))) == [
            [(n - 1, sum(range(n)))] for n in range(2, 9)
        ]


def test_rows_of_a_constant_stay_what_they_are(spark):
    t = pa.table({"v": pa.array([7], pa.int64())})
    constant = "select t.v, c.w from t left join (values (1)) as c(w) on t.v > c.w"
    assert [rows_of(run_small(spark, constant, {"t": t.slice(n % 2)})) for n in range(4)] == [
        [(7, 1)],
        [],
        [(7, 1)],
        [],
    ]


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("spark.sql.optimizer.excludedRules", ""),
        ("spark.sql.execution.arrow.localRelationThreshold", "0"),
        ("spark.sql.adaptive.enabled", "true"),
    ],
)
def test_a_plan_that_holds_rows_of_its_own_is_not_used_again(spark, setting, value):
    before = spark.small.conf.get(setting)
    spark.small.conf.set(setting, value)
    try:
        for number in (1, 2, 3, 4):
            t = pa.table({"v": pa.array([number], pa.int64())})
            u = pa.table({"w": pa.array([number], pa.int64())})
            both = f"select '{setting}' as s, t.v, u.w from t left join u on t.v = u.w"
            assert rows_of(run_small(spark, both, {"t": t, "u": u})) == [(setting, number, number)]
    finally:
        spark.small.conf.set(setting, before)


def test_a_program_that_runs_again_is_not_planned_again(spark, planned):
    for number in range(4):
        t = pa.table({"v": pa.array([number], pa.int64())})
        assert rows_of(run_small(spark, "select v, 'kept' as k from t", {"t": t})) == [(number, "kept")]
    assert len(planned) == 1
