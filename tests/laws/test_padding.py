"""A null may stand for a partner that is not there: no lookup finds such a row by that null."""

from __future__ import annotations

from collections import Counter

import pytest

from pgtrickle.plan.operators import Aggregate, Distinct, GroupKey, Operator, OuterJoin, Scan
from pgtrickle.plan.reads import KeyColumns
from pgtrickle.plan.rules.needs import Need
from tests.laws.checking import GIVEN, Needed, check
from tests.laws.parts import Names, call, expression, scan
from tests.laws.rows import Row
from tests.laws.sources import SOURCES
from tests.laws.zsets import World

LEFT, RIGHT = SOURCES[0], SOURCES[1]
PARTNERS: list[Row] = [(1, 1, 1)]
ALONE: list[Row] = [(2, 2, 2)]


def joined(*, keeps_right: bool) -> tuple[OuterJoin, Scan, Scan]:
    """An outer join of the two tables by their first columns."""
    names = Names()
    left, right = scan(LEFT, names), scan(RIGHT, names)
    pair = (f"{left.alias}.a", f"{right.alias}.a")
    return OuterJoin(left, right, (pair,), None, keeps_right), left, right


def world(left: list[Row], right: list[Row], new_left: list[Row], new_right: list[Row]) -> World:
    return World(
        {LEFT.relation: Counter(left), RIGHT.relation: Counter(right)},
        {LEFT.relation: Counter(new_left), RIGHT.relation: Counter(new_right)},
    )


def rows_with_null(column: str) -> Needed:
    """The need for rows in which a column is null."""
    return Needed((Need((column,), (KeyColumns(GIVEN, ("k0",)),), True),), ((None,),))


@pytest.mark.parametrize("keeps_right", [False, True])
def test_rows_of_the_left_are_needed_for_the_null_beside_them(keeps_right):
    op, _, right = joined(keeps_right=keeps_right)
    still = [*PARTNERS, *ALONE]
    check(op, world(still, PARTNERS, still, PARTNERS), needed=rows_with_null(f"{right.alias}.b"))


def test_rows_of_the_right_are_needed_for_the_null_beside_them():
    op, left, _ = joined(keeps_right=True)
    still = [*PARTNERS, *ALONE]
    check(op, world(PARTNERS, still, PARTNERS, still), needed=rows_with_null(f"{left.alias}.b"))


def grouped_by(op: Operator, column: str) -> Aggregate:
    key = GroupKey(op.column(column), expression(f'"{column}"'))
    return Aggregate(op, (key,), (call("count", None, Names()),))


@pytest.mark.parametrize("shape", [grouped_by, lambda op, column: Distinct(op)])
def test_the_group_of_rows_without_partner_is_counted_anew_when_one_more_comes(shape):
    op, _, right = joined(keeps_right=False)
    before, now = [*PARTNERS, *ALONE], [*PARTNERS, *ALONE, (0, 2, 2)]
    check(shape(op, f"{right.alias}.b"), world(before, PARTNERS, now, PARTNERS))


def test_the_group_of_rows_without_partner_is_counted_anew_when_one_finds_its_partner():
    op, _, right = joined(keeps_right=False)
    still = [*PARTNERS, *ALONE, (0, 2, 2)]
    check(grouped_by(op, f"{right.alias}.b"), world(still, PARTNERS, still, [*PARTNERS, (0, 1, 1)]))


def test_the_group_of_rows_without_partner_on_the_left_is_counted_anew():
    op, left, _ = joined(keeps_right=True)
    before, now = [*PARTNERS, *ALONE], [*PARTNERS, *ALONE, (0, 2, 2)]
    check(grouped_by(op, f"{left.alias}.b"), world(PARTNERS, before, PARTNERS, now))
