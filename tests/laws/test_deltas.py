"""The law of every delta rule: the delta of a tree is the difference of its two versions."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgtrickle.model.stream_table import RelationId
from pgtrickle.plan.deltas import RULES, versions_of
from pgtrickle.plan.operators import Distinct, Filter, Operator
from tests.laws import trees
from tests.laws.trees import SOURCES, Names
from tests.laws.zsets import World, evaluated, folded, minus

law = settings(max_examples=150, deadline=None)
supersets = st.frozensets(st.sampled_from([s.relation for s in SOURCES]))


def before(world: World) -> World:
    """The world in which the window has not happened."""
    return World(world.old, world.old)


def check(op: Operator, world: World, more: frozenset[RelationId]) -> None:
    versions = versions_of(op, world.changed | more)
    was, now = evaluated(op, before(world)), evaluated(op, world)
    assert folded(evaluated(versions.old, world)) == folded(was)
    assert folded(evaluated(versions.new, world)) == folded(now)
    if versions.delta is None:
        assert folded(was) == folded(now)
        return
    assert [c.name for c in versions.delta.columns] == [c.name for c in op.columns]
    assert folded(evaluated(versions.delta, world)) == folded(minus(now, was))


@law
@given(op=trees.trees(depth=3), world=trees.worlds(), more=supersets)
def test_the_delta_of_any_tree_is_the_difference_of_its_versions(op, world, more):
    check(op, world, more)


@st.composite
def over_scans(draw: st.DrawFn, kind: str) -> Operator:
    """One operator right above scans."""
    names = Names()
    child = draw(trees.scans(names, SOURCES))
    other = draw(trees.scans(names, SOURCES))
    match kind:
        case "Filter":
            return Filter(child, draw(trees.conditions(child)))
        case "Project":
            return trees.project(child, draw(st.lists(trees.scalars(child), min_size=1, max_size=3)), names)
        case "UnionAll":
            return draw(trees.unions(child, other, names))
        case "Join":
            return draw(trees.joins(child, other))
        case "Aggregate":
            return draw(trees.groups(child, names))
        case _:
            return Distinct(child)


@pytest.mark.parametrize("kind", sorted(rule.__name__ for rule in RULES))
def test_each_rule_alone_gives_the_difference(kind):
    @settings(max_examples=60, deadline=None)
    @given(op=over_scans(kind), world=trees.worlds(), more=supersets)
    def holds(op, world, more):
        assert type(op).__name__ == kind
        check(op, world, more)

    holds()


@law
@given(data=st.data(), world=trees.worlds(SOURCES[:1]))
def test_a_source_joined_with_itself_counts_each_changed_pair_once(data, world):
    op = data.draw(trees.trees(depth=2, sources=SOURCES[:1]))
    check(op, world, frozenset())
