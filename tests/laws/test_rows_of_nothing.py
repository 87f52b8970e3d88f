"""An aggregate without keys has its row also over no rows, and what it is joined with must know."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from pgtrickle.plan.operators import Aggregate, Join, Mark, Operator, OuterJoin, Scan, Single
from tests.laws.checking import check
from tests.laws.needs import needs
from tests.laws.parts import Names, call, scan
from tests.laws.sources import BOOLEAN, SOURCES, supersets, used, worlds
from tests.laws.test_binding import law
from tests.laws.trees import BINARY, UNARY, bare_trees, placements
from tests.laws.zsets import World


@st.composite
def filtered(draw: st.DrawFn, names: Names) -> Scan:
    return scan(draw(st.sampled_from(SOURCES)), names, draw(st.sampled_from([None, "{a} = 1", "{b} < 2"])))


@st.composite
def joined_with_a_count(draw: st.DrawFn) -> Operator:
    """A count over few rows, joined without a key with a table, and sometimes something around that."""
    names = Names()
    counted: Operator = draw(filtered(names))
    if draw(st.booleans()):
        counted = Join(counted, draw(filtered(names)), ())
    count: Operator = Aggregate(counted, (), (call("count", None, names),))
    if draw(st.booleans()):
        count = Single(count, ())
    left, right = draw(st.permutations([count, draw(filtered(names))]))
    op = draw(
        st.sampled_from(
            [
                Join(left, right, ()),
                OuterJoin(left, right, (), None),
                OuterJoin(left, right, (), None, keeps_right=True),
                Mark(left, right, (), None, names.column("m", BOOLEAN)),
            ]
        )
    )
    if draw(st.booleans()):
        outer = draw(st.sampled_from([*UNARY, *BINARY]))
        more = draw(bare_trees(names, 0, SOURCES))
        op = draw(UNARY[outer](op, names) if outer in UNARY else BINARY[outer](op, more, names))
    return draw(placements(op))


@law
@given(data=st.data(), op=joined_with_a_count(), more=supersets)
def test_what_is_joined_with_a_count_keeps_the_laws(data, op, more):
    world = data.draw(worlds(used(op)))
    check(op, world, more)
    check(op, world, more, data.draw(needs(op)))


def test_the_only_row_of_an_aggregate_over_nothing_meets_all_that_is_joined_with_it():
    """The change is not among the rows counted, but what is joined with their count needs it."""
    names = Names()
    table = SOURCES[0]
    counted = Aggregate(scan(table, names, "{a} = 1"), (), (call("count", None, names),))
    one, other = scan(table, names), scan(table, names)
    row = tuple(0 if c.name == "a" else 1 for c in table.columns)
    old, new = {table.relation: Counter({row: 2})}, {table.relation: Counter({row: 1})}
    world = World(old=old, new=new, before=1, now=1)
    check(OuterJoin(counted, one, (), None), world)
    check(OuterJoin(Single(counted, ()), one, (), None), world)
    check(Join(Join(counted, one, ()), other, ()), world)
    check(Join(Join(Single(counted, ()), one, ()), other, ()), world)
