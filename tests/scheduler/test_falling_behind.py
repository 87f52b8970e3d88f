"""A refresh that takes longer than its interval: the turns stretch, and it is told once."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from pgtrickle.model.stream_table import Status, StreamTableId
from pgtrickle.model.tier import Tier
from pgtrickle.scheduler.policy.candidate import Candidate
from pgtrickle.scheduler.policy.due import due
from pgtrickle.scheduler.policy.falling_behind import Episodes, episodes
from pgtrickle.scheduler.policy.graph import Graph
from pgtrickle.scheduler.policy.pacing import pace
from pgtrickle.scheduler.policy.schedule import parse_schedule
from tests.scheduler.graphs import node

START = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
ALONE = Graph.of([node(1)])
ONE = StreamTableId(1)
TABLE = Candidate(
    ONE,
    parse_schedule("1s"),
    Status.ACTIVE,
    is_populated=True,
    last_refresh_at=START,
    has_pending_changes=True,
)
QUIET = Episodes((), ())


def with_durations(*seconds: float) -> Candidate:
    return replace(TABLE, recent_durations=tuple(s * SECOND for s in seconds))


def played(durations: list[float], seconds: float) -> tuple[list[float], list[str]]:
    """A clock of tenths of seconds: when refreshes began, and what was told. The last duration goes on."""
    clock, candidate, began, told = START, TABLE, [], []
    left = list(durations)
    while clock < START + seconds * SECOND:
        found = episodes([candidate])
        told += ["begun" for _ in found.begun] + ["ended" for _ in found.ended]
        candidate = replace(
            candidate, is_behind=(candidate.is_behind or bool(found.begun)) and not found.ended
        )
        if due([candidate], clock, ALONE):
            began.append((clock - START).total_seconds())
            took = (left.pop(0) if len(left) > 1 else left[0]) * SECOND
            clock += took
            candidate = replace(
                candidate, last_refresh_at=clock, recent_durations=(took, *candidate.recent_durations)[:5]
            )
        clock += SECOND / 10
    return began, told


def test_a_table_that_keeps_up_is_refreshed_at_its_interval() -> None:
    began, told = played([0.1], 20)
    assert [round(b - a, 1) for a, b in itertools.pairwise(began)] == [1.1] * (len(began) - 1)
    assert told == []


def test_slow_refreshes_stretch_the_turns_and_are_told_once() -> None:
    began, told = played([5.0], 120)
    # each takes 5 s, and is followed by a pause of 6 s once three are known
    assert [round(b - a) for a, b in itertools.pairwise(began)][3:] == [11] * (len(began) - 4)
    assert told == ["begun"]


def test_it_recovers_by_itself_when_refreshes_become_faster() -> None:
    began, told = played([5.0] * 5 + [0.1], 120)
    assert round(began[-1] - began[-2], 1) == 1.1
    assert told == ["begun", "ended"]


def test_one_slow_refresh_changes_nothing() -> None:
    _, told = played([0.1, 0.1, 0.1, 30.0, 0.1], 60)
    assert told == []
    assert pace(with_durations(30, 0.1, 0.1, 0.1, 0.1)) == SECOND


def test_too_few_refreshes_tell_nothing() -> None:
    assert pace(with_durations(30, 30)) == SECOND
    assert episodes([with_durations(30, 30)]) == QUIET


def test_between_the_two_limits_nothing_is_told() -> None:
    nearly = with_durations(0.9, 0.9, 0.9)
    assert episodes([nearly, replace(nearly, is_behind=True)]) == QUIET


def test_a_lower_tier_has_more_time() -> None:
    slow = with_durations(1.5, 1.5, 1.5)
    assert episodes([slow]).begun == (ONE,)
    assert episodes([replace(slow, tier=Tier.WARM)]) == QUIET


def test_who_has_no_interval_cannot_fall_behind() -> None:
    for schedule in ("calculated", "manual", "@hourly"):
        slow = replace(with_durations(50, 50, 50), schedule=parse_schedule(schedule))
        assert episodes([slow]) == QUIET


@given(st.lists(st.floats(0, 1000), max_size=5), st.sampled_from(Tier))
def test_the_pace_is_never_shorter_than_the_interval(seconds: list[float], tier: Tier) -> None:
    assert pace(replace(with_durations(*seconds), tier=tier)) >= tier.factor * SECOND
