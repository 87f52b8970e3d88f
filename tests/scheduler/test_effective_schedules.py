"""The schedules of calculated tables follow from who reads them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgtrickle.model.stream_table import Status, StreamTableId
from pgtrickle.model.tier import Tier
from pgtrickle.scheduler.policy.candidate import Candidate
from pgtrickle.scheduler.policy.due import due
from pgtrickle.scheduler.policy.effective_schedules import (
    DiamondPolicy,
    RequestedSchedule,
    effective_schedules,
)
from pgtrickle.scheduler.policy.graph import Graph
from pgtrickle.scheduler.policy.schedule import Calculated, Every, Schedule, parse_schedule
from tests.scheduler.graphs import graphs, node

CHAIN = Graph.of([node(1), node(2, (1,)), node(3, (2,))])
FORK = Graph.of([node(1), node(2, (1,)), node(3, (1,))])
# 1 feeds 2 and 3, which meet in 4
DIAMOND = Graph.of([node(1, sources=(901,)), node(2, (1,)), node(3, (1,)), node(4, (2, 3))])


def seconds(graph: Graph, *schedules: str | None, **more: dict[int, object]) -> list[float | None]:
    """The effective interval of each table; None for those without one."""
    tiers, policies = more.get("tiers", {}), more.get("policies", {})
    asked = {
        StreamTableId(number): RequestedSchedule(
            parse_schedule(schedule),
            Tier(tiers.get(number, "hot")),
            DiamondPolicy(policies[number]) if number in policies else None,
        )
        for number, schedule in enumerate(schedules, start=1)
    }
    found = effective_schedules(asked, graph)
    return [interval(found[table]) for table in asked]


def interval(schedule: Schedule) -> float | None:
    if isinstance(schedule, Every | Calculated) and schedule.interval is not None:
        return schedule.interval.total_seconds()
    return None


def test_a_calculated_table_that_nobody_reads_follows_at_once() -> None:
    assert seconds(CHAIN, "calculated", "calculated", "calculated") == [None, None, None]


def test_a_calculated_table_is_refreshed_as_often_as_its_reader_needs_through_all_levels() -> None:
    assert seconds(CHAIN, "calculated", "calculated", "10s") == [10, 10, 10]
    assert seconds(CHAIN, "calculated", "1m", "10s") == [60, 60, 10]


def test_the_most_demanding_reader_decides() -> None:
    assert seconds(FORK, "calculated", "10s", "3s") == [3, 10, 3]
    assert seconds(FORK, "calculated", "10s", "calculated") == [None, 10, None]


@pytest.mark.parametrize("schedule", ["@hourly", None])
def test_a_reader_without_an_interval_is_followed_at_once(schedule: str | None) -> None:
    assert seconds(FORK, "calculated", "10s", schedule) == [None, 10, None]


def test_a_reader_of_a_lower_tier_needs_less() -> None:
    assert seconds(FORK, "calculated", "10s", "3s", tiers={3: "cold"}) == [10, 10, 3]
    assert seconds(FORK, "calculated", "10s", "3s", tiers={3: "frozen"}) == [10, 10, 3]


def test_an_interval_of_its_own_is_kept() -> None:
    assert seconds(CHAIN, "1m", "calculated", "10s") == [60, 10, 10]


def test_a_policy_gives_all_members_of_a_diamond_one_interval() -> None:
    arms = ("calculated", "5s", "1m", "calculated")
    assert seconds(DIAMOND, *arms) == [5, 5, 60, None]
    assert seconds(DIAMOND, *arms, policies={4: "fastest"}) == [5, 5, 5, 5]
    assert seconds(DIAMOND, *arms, policies={4: "slowest"}) == [60, 60, 60, 60]


def test_a_policy_without_a_diamond_or_without_intervals_changes_nothing() -> None:
    assert seconds(CHAIN, "calculated", "1m", "10s", policies={3: "slowest"}) == [60, 60, 10]
    assert seconds(DIAMOND, *["calculated"] * 4, policies={4: "fastest"}) == [None] * 4


def test_a_table_and_its_reader_fall_into_step() -> None:
    """Whenever the interval has come for both, the upstream goes first and feeds its reader at once."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    asked = {
        StreamTableId(1): RequestedSchedule(Calculated()),
        StreamTableId(2): RequestedSchedule(parse_schedule("10s")),
    }
    pair = Graph.of([node(1), node(2, (1,))])
    found = effective_schedules(asked, pair)

    def candidate(number: int, ago: float, *, has_changes: bool) -> Candidate:
        table = StreamTableId(number)
        last = now - timedelta(seconds=ago)
        return Candidate(table, found[table], Status.ACTIVE, True, last, has_changes)

    def chosen(first_ago: float, second_ago: float) -> tuple[int, ...]:
        tables = [candidate(1, first_ago, has_changes=True), candidate(2, second_ago, has_changes=False)]
        return due(tables, now, pair)

    assert chosen(5, 10) == ()
    assert chosen(10, 15) == (1, 2)
    assert chosen(10, 10) == (1, 2)


intervals = st.integers(1, 9).map(lambda tenths: Every(tenths * timedelta(seconds=0.1)))
others = st.sampled_from([parse_schedule(None), parse_schedule("@hourly")])


@st.composite
def definitions(draw: st.DrawFn) -> tuple[Graph, dict[StreamTableId, RequestedSchedule]]:
    graph = draw(graphs)
    schedules = st.one_of(st.just(Calculated()), intervals, others)
    policies = st.sampled_from([None, None, DiamondPolicy.FASTEST])
    return graph, {table: RequestedSchedule(draw(schedules), policy=draw(policies)) for table in graph.order}


@given(definitions())
def test_every_interval_is_met_by_all_calculated_tables_above_it(
    drawn: tuple[Graph, dict[StreamTableId, RequestedSchedule]],
) -> None:
    graph, asked = drawn
    found = effective_schedules(asked, graph)
    for table in graph.order:
        for reader in graph.downstream(table):
            if isinstance(found[table], Calculated):
                assert (interval(found[table]) or 0) <= (interval(found[reader]) or 0)


@given(definitions())
def test_nothing_is_refreshed_more_often_than_somebody_needs(
    drawn: tuple[Graph, dict[StreamTableId, RequestedSchedule]],
) -> None:
    graph, asked = drawn
    found = effective_schedules({t: RequestedSchedule(a.schedule) for t, a in asked.items()}, graph)
    for table in graph.order:
        needed = interval(found[table])
        if isinstance(found[table], Calculated) and needed is not None:
            assert needed in [interval(found[reader]) for reader in graph.downstream(table)]
        elif not isinstance(found[table], Calculated):
            assert found[table] == asked[table].schedule
