"""The graph of stream tables: order, closures, diamonds, groups."""

from __future__ import annotations

import pytest
from hypothesis import given

from pgtrickle.model.errors import CyclicStreamTables
from pgtrickle.model.stream_table import RelationId, StreamTableId
from pgtrickle.scheduler.policy.graph import Graph, Node
from tests.scheduler.graphs import graphs, node, nodes

ORDERS, CUSTOMERS = 901, 902
DIAMOND = Graph.of([node(4, upstream=(2, 3)), node(3, (1,)), node(2, (1,)), node(1, sources=(ORDERS,))])


def tables(*numbers: int) -> frozenset[StreamTableId]:
    return frozenset(map(StreamTableId, numbers))


def common(graph: Graph, number: int) -> frozenset[RelationId]:
    return graph.common_sources(StreamTableId(number))


def test_whoever_is_read_comes_first() -> None:
    assert DIAMOND.order == (1, 2, 3, 4)


def test_closures_reach_all_the_way_and_leave_out_the_table_itself() -> None:
    assert DIAMOND.all_upstream(StreamTableId(4)) == tables(1, 2, 3)
    assert DIAMOND.all_downstream(StreamTableId(1)) == tables(2, 3, 4)
    assert DIAMOND.upstream(StreamTableId(4)) == tables(2, 3)
    assert DIAMOND.downstream(StreamTableId(2)) == tables(4)


def test_a_circle_is_refused_with_the_names_in_it() -> None:
    with pytest.raises(CyclicStreamTables) as refused:
        Graph.of([node(1, (3,)), node(2, (1,)), node(3, (2,)), node(4)])
    names = refused.value.message.split(": ")[1].split(" → ")
    assert names[0] == names[-1]
    assert set(names) == {"public.t1", "public.t2", "public.t3"}


def test_a_table_that_reads_itself_is_a_circle() -> None:
    with pytest.raises(CyclicStreamTables, match=r"public\.t1 → public\.t1"):
        Graph.of([node(1, (1,))])


def test_a_dropped_upstream_leaves_its_readers_in_the_graph() -> None:
    graph = Graph.of([node(2, (1,)), node(3, (2,))])
    assert graph.order == (2, 3)
    assert graph.upstream(StreamTableId(2)) == frozenset()


def test_a_source_that_comes_by_two_upstream_tables_is_common() -> None:
    assert common(DIAMOND, 4) == {ORDERS}
    assert DIAMOND.arms(StreamTableId(4)) == tables(1, 2, 3)


def test_a_source_read_directly_and_through_an_upstream_table_is_common() -> None:
    graph = Graph.of([node(1, sources=(ORDERS,)), node(2, (1,), (ORDERS, CUSTOMERS))])
    assert common(graph, 2) == {ORDERS}


def test_an_upstream_table_that_also_reads_the_other_makes_a_common_source() -> None:
    graph = Graph.of([node(1, sources=(ORDERS,)), node(2, (1,)), node(3, (1, 2))])
    assert common(graph, 3) == {ORDERS}


def test_below_a_diamond_there_is_only_one_way_in() -> None:
    graph = Graph.of([*DIAMOND.nodes.values(), node(5, (4,))])
    assert common(graph, 5) == frozenset()
    assert graph.arms(StreamTableId(5)) == frozenset()


def test_upstream_tables_over_different_sources_have_nothing_in_common() -> None:
    graph = Graph.of([node(1, sources=(ORDERS,)), node(2, sources=(CUSTOMERS,)), node(3, (1, 2))])
    assert common(graph, 3) == frozenset()


def test_arms_leave_out_upstream_tables_that_carry_no_common_source() -> None:
    graph = Graph.of(
        [
            node(1, sources=(ORDERS,)),
            node(2, sources=(ORDERS,)),
            node(3, sources=(CUSTOMERS,)),
            node(4, (1, 2, 3)),
        ]
    )
    assert graph.arms(StreamTableId(4)) == tables(1, 2)


@given(graphs)
def test_every_table_comes_after_all_it_depends_on(graph: Graph) -> None:
    place = {table: at for at, table in enumerate(graph.order)}
    assert place.keys() == graph.nodes.keys()
    for table in graph.order:
        assert all(place[above] < place[table] for above in graph.all_upstream(table))


@given(graphs)
def test_upstream_and_downstream_mirror_each_other(graph: Graph) -> None:
    pairs_up = {(above, table) for table in graph.order for above in graph.all_upstream(table)}
    pairs_down = {(table, below) for table in graph.order for below in graph.all_downstream(table)}
    assert pairs_up == pairs_down


@given(nodes())
def test_the_graph_does_not_depend_on_the_order_of_its_tables(drawn: list[Node]) -> None:
    assert Graph.of(drawn) == Graph.of(reversed(drawn))
