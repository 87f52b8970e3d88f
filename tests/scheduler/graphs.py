"""Graphs of stream tables, written by hand or drawn at random."""

from __future__ import annotations

from hypothesis import strategies as st

from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import RelationId, StreamTableId
from pgtrickle.scheduler.policy.graph import Graph, Node


def node(
    number: int, upstream: tuple[int, ...] = (), sources: tuple[int, ...] = (), *, owner: int = 0
) -> Node:
    """Stream table `number`, called `public.t<number>`."""
    return Node(
        StreamTableId(number),
        RelationName("public", f"t{number}"),
        frozenset(map(StreamTableId, upstream)),
        frozenset(map(RelationId, sources)),
        owner=owner,
    )


@st.composite
def nodes(draw: st.DrawFn) -> list[Node]:
    """Up to eight stream tables without a circle, their numbers in no order of dependency."""
    numbers = draw(st.permutations(range(1, draw(st.integers(0, 8)) + 1)))
    some = st.frozensets(st.integers(901, 904), max_size=3)
    drawn = [
        node(
            number,
            tuple(draw(st.frozensets(st.sampled_from(numbers[:at]), max_size=3)) if at else ()),
            tuple(draw(some)),
        )
        for at, number in enumerate(numbers)
    ]
    return draw(st.permutations(drawn))


graphs: st.SearchStrategy[Graph] = nodes().map(Graph.of)
