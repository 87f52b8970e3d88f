"""Who goes first: urgent before late before idle."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from pgtrickle.model.stream_table import Status, StreamTableId
from pgtrickle.model.tier import Tier
from pgtrickle.scheduler.policy.candidate import Candidate
from pgtrickle.scheduler.policy.schedule import parse_schedule
from pgtrickle.scheduler.policy.urgency import Queue, Urgency, group_urgency, urgency

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def table(number: int = 1, ago: int = 10, schedule: str | None = "5s", tier: Tier = Tier.HOT) -> Candidate:
    """An active table with changes, refreshed `ago` seconds before now."""
    return Candidate(
        StreamTableId(number),
        parse_schedule(schedule),
        Status.ACTIVE,
        is_populated=True,
        last_refresh_at=NOW - ago * SECOND,
        has_pending_changes=True,
        tier=tier,
    )


def order(*tables: Candidate) -> list[int]:
    queue = Queue[int]()
    for one in tables:
        queue.put(one.id, urgency(one, NOW))
    taken = []
    while queue:
        taken.append(queue.take(NOW))
    return taken


def is_late(candidate: Candidate) -> bool:
    return urgency(candidate, NOW).sort_key(NOW)[1] > 0


def test_who_is_waited_for_goes_before_who_is_late_before_who_is_idle() -> None:
    waited_for = replace(table(3, ago=0, schedule=None), refresh_requested=True)
    new = replace(table(4), status=Status.INITIALIZING, is_populated=False, last_refresh_at=None)
    assert order(table(1, ago=1), table(2, ago=3600), waited_for, new) == [3, 4, 2, 1]


def test_the_later_goes_first() -> None:
    assert order(table(1, ago=6), table(2, ago=60), table(3, ago=8)) == [2, 3, 1]


def test_hot_goes_before_warm_before_cold_when_they_are_equally_late() -> None:
    tables = [
        table(1, ago=50 + 20, tier=Tier.COLD),
        table(2, ago=10 + 20, tier=Tier.WARM),
        table(3, ago=5 + 20, tier=Tier.HOT),
    ]
    assert order(*tables) == [3, 2, 1]


def test_a_cold_table_is_not_left_behind_for_ever() -> None:
    assert order(table(1, ago=6), table(2, ago=3600, tier=Tier.COLD)) == [2, 1]


def test_of_those_that_follow_at_once_the_one_not_served_for_longest_goes_first() -> None:
    assert order(table(1, 3, "calculated"), table(2, 9, "calculated"), table(3, 2, "calculated")) == [2, 1, 3]


def test_what_only_the_clock_asks_for_is_idle_until_a_whole_turn_is_missed() -> None:
    clock = replace(table(schedule="5s"), has_pending_changes=False, always=True)
    assert not is_late(replace(clock, last_refresh_at=NOW - 9 * SECOND))
    assert is_late(replace(clock, last_refresh_at=NOW - 11 * SECOND))


def test_a_missed_cron_moment_makes_late_from_that_moment_on() -> None:
    hourly = table(schedule="@hourly")
    long_ago = replace(hourly, last_refresh_at=NOW - timedelta(hours=2, minutes=30))
    assert urgency(long_ago, NOW).sort_key(NOW) == (False, 7200.0)


def test_a_group_is_as_urgent_as_its_most_urgent_member() -> None:
    members = [table(1, ago=1), table(2, ago=100), table(3, ago=6)]
    assert group_urgency(members, NOW) == urgency(members[1], NOW)


def test_who_waits_is_not_passed_over_by_those_that_come_later() -> None:
    """Each comes back a moment after its turn, as tables do whose sources never rest."""
    queue = Queue[int]()
    for number in range(3):
        queue.put(number, Urgency(False, NOW - SECOND, 1))
    queue.put(9, Urgency(False, NOW + SECOND, 1))
    taken = []
    for moment in range(8):
        now = NOW + moment * SECOND
        taken.append(queue.take(now))
        queue.put(taken[-1], Urgency(False, now + SECOND, 1))
    assert taken == [0, 1, 2, 9, 0, 1, 2, 9]


def test_in_the_long_run_a_cold_table_is_served_as_often_as_its_tier_says() -> None:
    queue = Queue[str]()
    for number in range(5):
        queue.put(f"hot {number}", Urgency(False, NOW, 1))
    queue.put("cold", Urgency(False, NOW, 10))
    served = []
    for moment in range(600):
        now = NOW + moment * SECOND
        served.append(queue.take(now))
        queue.put(served[-1], Urgency(False, now, 10 if served[-1] == "cold" else 1))
    assert 8 <= served.count("hot 0") / served.count("cold") <= 12


def test_of_equals_whoever_came_first_is_taken_first() -> None:
    assert order(table(3), table(1), table(2)) == [3, 1, 2]


@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from(Tier), st.sampled_from(["1s", "calculated"])))
)
def test_waiting_longer_never_makes_less_urgent(drawn: list[tuple[int, Tier, str]]) -> None:
    for number, (ago, tier, schedule) in enumerate(drawn):
        candidate = table(number, ago, schedule, tier)
        assert urgency(candidate, NOW).sort_key(NOW + SECOND) > urgency(candidate, NOW).sort_key(NOW)
