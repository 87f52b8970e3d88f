"""The law of pruning: columns that nobody reads can go, and no other column notices."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from pgtrickle.plan.pruning import pruned
from tests.laws import trees
from tests.laws.zsets import chosen, evaluated


@settings(max_examples=200, deadline=None)
@given(data=st.data(), op=trees.trees(depth=3), world=trees.worlds())
def test_pruning_never_changes_the_bag_of_needed_columns(data, op, world):
    names = [c.name for c in op.columns]
    needed = data.draw(st.lists(st.sampled_from(names), unique=True)) if names else []
    less = pruned(op, needed)
    assert set(needed) <= less.names <= op.names
    assert chosen(less, evaluated(less, world), needed) == chosen(op, evaluated(op, world), needed)


@settings(max_examples=100, deadline=None)
@given(data=st.data(), op=trees.trees(depth=3))
def test_pruning_twice_is_pruning_once(data, op):
    names = [c.name for c in op.columns]
    needed = data.draw(st.lists(st.sampled_from(names), unique=True)) if names else []
    assert pruned(pruned(op, needed), needed) == pruned(op, needed)
