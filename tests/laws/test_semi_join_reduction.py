"""Groups that changed are completed only if a filtered neighbour has their keys."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgtrickle.plan.expressions import column
from pgtrickle.plan.operators import Aggregate, GroupKey, Join, Mark, Operator, OuterJoin
from pgtrickle.plan.passes.bind import Binding
from tests.fixtures.lanes import examples
from tests.laws.checking import check
from tests.laws.needs import needs
from tests.laws.parts import Names, call, calls, integers, result, scan
from tests.laws.reading import Reader
from tests.laws.sources import BOOLEAN, SOURCES, supersets, used, worlds
from tests.laws.test_binding import law
from tests.laws.trees import BINARY, UNARY, bare_trees, placements
from tests.laws.zsets import World


@st.composite
def met_groups(draw: st.DrawFn) -> Operator:
    """Groups joined by all of their key with a filtered table, and sometimes something around that."""
    names = Names()
    child = draw(bare_trees(names, draw(st.integers(0, 1)), SOURCES))
    keys = draw(st.lists(st.sampled_from(integers(child)), min_size=1, max_size=2)) if integers(child) else []
    grouped = tuple(GroupKey(result(child, column(k), names.fresh("k")), column(k)) for k in keys)
    made = (call("count", None, names), *draw(st.lists(calls(child, names, True), max_size=1)))
    groups = Aggregate(child, grouped, made)
    other = scan(draw(st.sampled_from(SOURCES)), names, draw(st.sampled_from(["{a} = 1", "{b} < 2"])))
    own = [draw(st.sampled_from(integers(other))) for _ in grouped]
    on = tuple((ours, key.column.name) for ours, key in zip(own, grouped, strict=True))
    kind = draw(st.sampled_from([Join, Join, OuterJoin, Mark]))
    op: Operator = Join(other, groups, on)
    if kind is OuterJoin:
        op = OuterJoin(other, groups, on, None)
    elif kind is Mark:
        op = Mark(other, groups, on, None, names.column("m", BOOLEAN))
    if draw(st.booleans()):
        outer = draw(st.sampled_from([*UNARY, *BINARY]))
        more = draw(bare_trees(names, 0, SOURCES))
        op = draw(UNARY[outer](op, names) if outer in UNARY else BINARY[outer](op, more, names))
    return draw(placements(op))


@settings(law, max_examples=examples(400))
@given(data=st.data(), op=met_groups(), more=supersets)
def test_what_is_completed_only_if_met_keeps_the_laws(data, op, more):
    check(op, data.draw(worlds(used(op))), more, data.draw(needs(op)))


def joined(left: Operator, right: Operator, pair: tuple[str, str]) -> Operator:
    return Join(left, right, (pair,))


def outer_joined(left: Operator, right: Operator, pair: tuple[str, str]) -> Operator:
    return OuterJoin(left, right, (pair,), None)


@pytest.mark.parametrize("combined", [joined, outer_joined])
def test_a_changed_group_that_meets_nothing_is_not_read(combined):
    names = Names()
    table, other = SOURCES[:2]
    few = scan(other, names, "{a} = 1")
    rows = scan(table, names)
    key = GroupKey(result(rows, column(f"{rows.alias}.a"), "k"), column(f"{rows.alias}.a"))
    groups = Aggregate(rows, (key,), (call("count", None, names),))
    op = combined(few, groups, (f"{few.alias}.a", "k"))
    old = {s.relation: Counter((n % 10, n, 0) for n in range(100)) for s in (table, other)}
    new = old | {table.relation: old[table.relation] + Counter((n, 0, 1) for n in range(10))}
    _, reads = Binding(frozenset({table.relation})).program(op)
    found = Reader(World(old, new), {}).read_all(reads)
    read = {name: len(part.found) for name, part in found.items()}
    assert read[f"change_of_{rows.alias}"] == 10
    assert sum(n for name, n in read.items() if name.startswith(f"rows_of_{rows.alias}")) <= 12
