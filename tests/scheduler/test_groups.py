"""Which due tables commit at once."""

from __future__ import annotations

from dataclasses import replace

from pgtrickle.model.stream_table import StreamTableId
from pgtrickle.scheduler.policy.graph import Graph
from pgtrickle.scheduler.policy.units import groups
from tests.scheduler.graphs import node

ARMS = (node(1, sources=(901,)), node(2, sources=(901,)))
TOP = node(3, upstream=(1, 2))
ANY = replace(TOP, is_atomic=False)


def ids(*numbers: int) -> tuple[StreamTableId, ...]:
    return tuple(map(StreamTableId, numbers))


def test_a_diamond_brings_its_arms_along_and_commits_with_them() -> None:
    assert groups(ids(3), Graph.of([*ARMS, TOP])) == [ids(1, 2, 3)]
    assert groups(ids(1, 3), Graph.of([*ARMS, TOP])) == [ids(1, 2, 3)]


def test_a_table_that_may_show_two_versions_comes_by_itself_after_its_arms() -> None:
    graph = Graph.of([*ARMS, ANY])
    assert groups(ids(3), graph) == [ids(3)]
    assert groups(ids(1, 2, 3), graph) == [ids(1), ids(2), ids(3)]


def test_it_still_comes_after_an_arm_that_others_are_refreshed_with() -> None:
    graph = Graph.of([*ARMS, ANY, node(4, upstream=(1,))])
    found = groups(ids(1, 2, 3, 4), graph)
    assert found.index(ids(1, 4)) < found.index(ids(3))
    assert found.index(ids(2)) < found.index(ids(3))


def test_a_diamond_above_it_needs_everything_below_at_one_version() -> None:
    graph = Graph.of([*ARMS, ANY, node(4, upstream=(1, 3))])
    assert groups(ids(4), graph) == [ids(1, 2, 3, 4)]
