"""The laws of binding: what changed is right, what is needed is right, all else is the same twice."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pgtrickle.plan.operators import Operator
from tests.fixtures.lanes import examples
from tests.laws.checking import ALL, GIVEN, bound_rows, check, truths
from tests.laws.ends import end
from tests.laws.needs import needs
from tests.laws.parts import Names, scans
from tests.laws.sources import SOURCES, supersets, used, worlds
from tests.laws.trees import BINARY, UNARY, placements, trees

law = settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])


@law
@given(data=st.data(), op=trees(), more=supersets)
def test_the_difference_of_the_ends_is_the_change_of_the_tree(data, op, more):
    check(op, data.draw(worlds(used(op))), more)


@law
@given(data=st.data(), op=trees(), more=supersets)
def test_what_is_needed_is_right_and_complete_at_both_ends(data, op, more):
    check(op, data.draw(worlds(used(op))), more, data.draw(needs(op)))


@law
@given(data=st.data(), op=trees())
def test_a_lookup_that_gives_up_columns_with_many_keys_changes_no_answer(data, op):
    check(op, data.draw(worlds(used(op))), needed=data.draw(needs(op)), many=1)


@law
@given(data=st.data(), op=trees())
def test_reading_sources_whole_gives_the_same(data, op):
    check(op, data.draw(worlds(used(op))), is_whole=True)


@law
@given(data=st.data(), op=trees(), lost=st.sets(st.integers(0, 12)), more=supersets)
def test_reads_that_nobody_holds_change_no_answer(data, op, lost, more):
    """Their keys are found by PostgreSQL, or every row is: whichever reads they are."""
    numbers: dict[str, int] = {}

    def is_lost(name: str) -> bool:
        return name != GIVEN and numbers.setdefault(name, len(numbers)) in lost

    check(op, data.draw(worlds(used(op))), more, data.draw(needs(op)), lost=is_lost)


@law
@given(data=st.data(), op=trees(sources=SOURCES[:1]))
def test_a_source_that_meets_itself_counts_each_change_once(data, op):
    check(op, data.draw(worlds(used(op))), needed=data.draw(needs(op)))


@law
@given(data=st.data(), op=trees())
def test_the_first_load_is_the_query_itself(data, op):
    world = data.draw(worlds(used(op)))
    _, now = truths(op, world)
    assert end(bound_rows(op, world, frozenset(), ALL), 1) == now


@st.composite
def over_scans(draw: st.DrawFn, kind: type[Operator]) -> Operator:
    """One operator right above scans."""
    names = Names()
    child, other = draw(scans(names, SOURCES)), draw(scans(names, SOURCES))
    op = draw(UNARY[kind](child, names) if kind in UNARY else BINARY[kind](child, other, names))
    assert isinstance(op, kind)
    return draw(placements(op))


@pytest.mark.parametrize("kind", [*UNARY, *BINARY], ids=lambda kind: kind.__name__)
def test_each_operator_alone_keeps_the_laws(kind):
    @settings(law, max_examples=examples(40))
    @given(data=st.data(), op=over_scans(kind), more=supersets)
    def holds(data, op, more):
        check(op, data.draw(worlds(used(op))), more, data.draw(needs(op)))

    holds()
