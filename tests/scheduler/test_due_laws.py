"""Laws of the decision, whatever the tables, their schedules and their failures."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from pgtrickle.model.stream_table import Status
from pgtrickle.model.tier import Tier
from pgtrickle.scheduler.policy.cron import Cron, parse_cron
from pgtrickle.scheduler.policy.due import Candidate, due, next_check
from pgtrickle.scheduler.policy.graph import Graph
from pgtrickle.scheduler.policy.schedule import Calculated, Every, Manual
from tests.scheduler.graphs import graphs

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)

spans = st.integers(-20, 20).map(lambda halves: halves * timedelta(seconds=0.5))
moments = spans.map(lambda span: NOW + span)
durations = st.integers(0, 20).map(lambda halves: halves * timedelta(seconds=0.5))
schedules = st.one_of(
    st.just(Manual()),
    st.just(Calculated()),
    st.integers(1, 20).map(lambda halves: Every(halves * timedelta(seconds=0.5))),
    st.sampled_from(["*/3 * * * * *", "* * * * *", "@hourly"]).map(parse_cron),
)


@st.composite
def ticks(draw: st.DrawFn) -> tuple[Graph, list[Candidate]]:
    """A graph, and what a tick knows of each of its tables."""
    graph = draw(graphs)
    candidates = [
        Candidate(
            id=table,
            schedule=draw(schedules),
            status=draw(st.sampled_from(Status)),
            is_populated=draw(st.booleans()),
            last_refresh_at=draw(st.none() | moments),
            has_pending_changes=draw(st.booleans()),
            retry_at=draw(st.none() | moments),
            refresh_requested=draw(st.booleans()),
            needs_reinit=draw(st.booleans()),
            always=draw(st.booleans()),
            compares=draw(st.booleans()),
            data_timestamp=draw(st.none() | moments),
            tier=draw(st.sampled_from(Tier)),
            is_gated=draw(st.booleans()),
            recent_durations=tuple(draw(st.lists(durations, max_size=5))),
        )
        for table in graph.order
    ]
    return graph, draw(st.permutations(candidates))


Tick = tuple[Graph, list[Candidate]]


@given(ticks(), moments)
def test_whoever_is_read_is_due_before_its_readers(tick: Tick, now: datetime) -> None:
    graph, candidates = tick
    found = due(candidates, now, graph)
    for at, table in enumerate(found):
        assert graph.all_downstream(table).isdisjoint(found[:at])


@given(ticks(), moments)
def test_nothing_is_due_twice(tick: Tick, now: datetime) -> None:
    graph, candidates = tick
    found = due([*candidates, *candidates], now, graph)
    assert len(found) == len(set(found))
    assert found == due(candidates, now, graph)


@given(ticks(), moments, moments)
def test_what_is_due_stays_due_until_it_is_refreshed(tick: Tick, one: datetime, other: datetime) -> None:
    graph, candidates = tick
    earlier, later = sorted((one, other))
    assert set(due(candidates, earlier, graph)) <= set(due(candidates, later, graph))


@given(ticks(), moments, st.data())
def test_a_failing_table_takes_no_other_from_what_is_due(
    tick: Tick, now: datetime, data: st.DataObject
) -> None:
    graph, candidates = tick
    failing = data.draw(st.sampled_from([None, *graph.order]))
    before = set(due(candidates, now, graph))
    failed = [
        replace(c, status=Status.ERROR, retry_at=now + timedelta(seconds=1)) if c.id == failing else c
        for c in candidates
    ]
    lost = before - set(due(failed, now, graph)) - {failing}
    # only who had nothing to do but to follow the failing table has nothing to do now
    without_feeding = {c.id for c in candidates if due([c], now, graph)}
    assert lost.isdisjoint(without_feeding)
    assert failing is not None or not lost
    if failing is not None:
        assert lost <= graph.all_downstream(failing)


@given(ticks(), moments)
def test_nothing_becomes_due_before_the_loop_looks_again(tick: Tick, now: datetime) -> None:
    graph, candidates = tick
    moments = [next_check(candidate, now) for candidate in candidates]
    wake = min((moment for moment in moments if moment is not None), default=None)
    assert wake is None or wake > now
    just_before = NOW + timedelta(days=1) if wake is None else wake - timedelta(microseconds=1)
    assert due(candidates, just_before, graph) == due(candidates, now, graph)


@given(ticks(), moments)
def test_a_table_never_refreshes_without_a_reason(tick: Tick, now: datetime) -> None:
    graph, candidates = tick
    idle = [
        replace(
            c,
            status=Status.ACTIVE,
            is_populated=True,
            has_pending_changes=False,
            refresh_requested=False,
            needs_reinit=False,
            always=False,
            compares=False,
        )
        for c in candidates
        # a moment of the clock is a reason of its own
        if not isinstance(c.schedule, Cron)
    ]
    assert due(idle, now, graph) == ()
