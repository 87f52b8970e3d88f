"""Which due tables go together, and which unit waits for which."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pgtrickle.model.stream_table import StreamTableId
from pgtrickle.scheduler.policy.graph import Graph
from pgtrickle.scheduler.policy.units import MAX_TOGETHER, Unit, groups, units
from tests.scheduler.graphs import graphs, node

ORDERS, CUSTOMERS = 901, 902


def ids(*numbers: int) -> tuple[StreamTableId, ...]:
    return tuple(map(StreamTableId, numbers))


def shapes(found: list[Unit]) -> list[tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]]:
    return [(unit.tables, tuple(above.tables for above in unit.after)) for unit in found]


def test_a_chain_is_one_unit() -> None:
    chain = Graph.of([node(1, sources=(ORDERS,)), node(2, (1,)), node(3, (2,))])
    assert shapes(units(ids(1, 2, 3), chain)) == [((1, 2, 3), ())]


def test_tables_over_one_source_go_together_and_others_do_not() -> None:
    graph = Graph.of([node(1, sources=(ORDERS,)), node(2, sources=(ORDERS,)), node(3, sources=(CUSTOMERS,))])
    assert shapes(units(ids(1, 2, 3), graph)) == [((1, 2), ()), ((3,), ())]


def test_many_tables_over_one_source_are_several_units() -> None:
    graph = Graph.of([node(n, sources=(ORDERS,)) for n in range(1, 201)])
    found = units(ids(*range(1, 201)), graph)
    assert max(len(unit.tables) for unit in found) <= MAX_TOGETHER
    assert sorted(t for unit in found for t in unit.tables) == list(range(1, 201))
    assert len(found) <= 2 * 200 // MAX_TOGETHER


def test_a_slow_table_commits_alone_and_its_reader_waits_for_it() -> None:
    chain = Graph.of([node(1, sources=(ORDERS,)), node(2, (1,)), node(3, (2,))])
    assert shapes(units(ids(1, 2, 3), chain, slow=ids(2))) == [((1,), ()), ((2,), ((1,),)), ((3,), ((2,),))]


def test_quick_tables_on_both_sides_of_a_slow_one_take_it_along() -> None:
    above = [node(3, (2,), (CUSTOMERS,)), node(4, (1,), (CUSTOMERS,))]
    graph = Graph.of([node(1, sources=(ORDERS,)), node(2, (1,)), *above])
    found = units(ids(1, 2, 3, 4), graph, slow=ids(2))
    assert [sorted(unit.tables) for unit in found] == [[1, 2, 3, 4]]


def test_a_diamond_brings_its_arms_along_also_when_slow() -> None:
    diamond = Graph.of([node(1, sources=(ORDERS,)), node(2, (1,)), node(3, (1,)), node(4, (2, 3))])
    assert shapes(units(ids(4), diamond, slow=ids(2))) == [((1, 2, 3, 4), ())]
    assert groups(ids(4), diamond) == [(1, 2, 3, 4)]


@given(graphs, st.data())
def test_a_unit_comes_after_all_that_it_reads(graph: Graph, data: st.DataObject) -> None:
    some = st.sets(st.sampled_from(graph.order)) if graph.order else st.just(set())
    due, slow = data.draw(some), data.draw(some)
    found = units(sorted(due), graph, slow=slow)
    place = {table: position for position, unit in enumerate(found) for table in unit.tables}
    assert len(place) == sum(len(unit.tables) for unit in found)
    assert place.keys() >= due
    for position, unit in enumerate(found):
        assert all(found.index(above) < position for above in unit.after)
        assert unit.tables == graph.sorted(unit.tables)
        for table in unit.tables:
            waited_for = {t for above in unit.after for t in above.tables}
            assert graph.upstream(table) & place.keys() <= {*unit.tables, *waited_for}
            if graph.common_sources(table):
                assert graph.all_upstream(table) <= set(unit.tables)


def test_what_others_own_is_a_unit_of_its_own_unless_two_ways_must_agree() -> None:
    graph = Graph.of(
        [
            node(1, sources=(ORDERS,), owner=1),
            node(2, sources=(ORDERS,), owner=2),
            node(3, (1,), owner=2),
            node(4, sources=(ORDERS,), owner=1),
        ]
    )
    assert shapes(units(ids(1, 2, 3, 4), graph)) == [((1, 4), ()), ((2,), ()), ((3,), ((1, 4),))]
    arms = [node(2, (1,), owner=1), node(3, (1,), owner=1)]
    diamond = Graph.of([node(1, sources=(ORDERS,), owner=1), *arms, node(4, (2, 3), owner=2)])
    assert shapes(units(ids(4), diamond)) == [((1, 2, 3, 4), ())]
