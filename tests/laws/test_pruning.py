"""The law of pruning: columns that nobody reads can go, and no other column notices."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pgtrickle.plan.operators import Operator
from pgtrickle.plan.passes.prune import prune
from tests.fixtures.lanes import examples
from tests.laws.checking import check, truths
from tests.laws.sources import used, worlds
from tests.laws.trees import trees
from tests.laws.zsets import chosen

law = settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def needed(draw: st.DrawFn, op: Operator) -> list[str]:
    """Some columns of the tree."""
    names = [c.name for c in op.columns]
    return draw(st.lists(st.sampled_from(names), unique=True)) if names else []


@law
@given(data=st.data(), op=trees())
def test_pruning_never_changes_the_bag_of_needed_columns(data, op):
    names = data.draw(needed(op))
    less = prune(op, names)
    assert set(names) <= less.names <= op.names
    world = data.draw(worlds(used(op)))
    for whole, part in zip(truths(op, world), truths(less, world), strict=True):
        assert chosen(less, part, names) == chosen(op, whole, names)


@law
@given(data=st.data(), op=trees())
def test_what_is_left_by_pruning_keeps_the_laws(data, op):
    check(prune(op, data.draw(needed(op))), data.draw(worlds(used(op))))


@law
@given(data=st.data(), op=trees())
def test_pruning_twice_is_pruning_once(data, op):
    names = data.draw(needed(op))
    assert prune(prune(op, names), names) == prune(op, names)
