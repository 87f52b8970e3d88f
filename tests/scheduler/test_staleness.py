"""Data is stale if a change has waited for longer than the schedule allows, and a limit beyond that."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pgtrickle.model.tier import Tier
from pgtrickle.scheduler.policy.schedule import Calculated, parse_schedule
from pgtrickle.scheduler.policy.staleness import is_stale

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
LIMIT = timedelta(seconds=60)


def stale(schedule: str | None, age: float, tier: Tier = Tier.HOT, *, was_stale: bool = False) -> bool:
    found = parse_schedule(schedule)
    return is_stale(found, tier, NOON, NOON + timedelta(seconds=age), LIMIT, was_stale=was_stale)


@pytest.mark.parametrize(
    ("schedule", "tier", "allowed"),
    [
        ("calculated", Tier.HOT, 60),
        ("calculated", Tier.WARM, 62),
        ("30s", Tier.HOT, 90),
        ("30s", Tier.COLD, 360),
        ("@hourly", Tier.HOT, 3660),
        ("30 12 * * *", Tier.COLD, 1860),
    ],
)
def test_a_change_may_wait_for_its_schedule_and_the_limit(schedule, tier, allowed):
    assert not stale(schedule, allowed, tier)
    assert stale(schedule, allowed + 1, tier)


@pytest.mark.parametrize(("schedule", "tier"), [(None, Tier.HOT), ("1s", Tier.FROZEN)])
def test_what_is_refreshed_on_request_is_never_stale(schedule, tier):
    assert not stale(schedule, 1e6, tier)


def test_a_calculated_table_may_be_as_late_as_its_readers_need():
    hourly, now = Calculated(timedelta(hours=1)), NOON + timedelta(hours=1)
    assert not is_stale(hourly, Tier.HOT, NOON, now, LIMIT, was_stale=False)
    assert is_stale(hourly, Tier.HOT, NOON, now + timedelta(seconds=61), LIMIT, was_stale=False)


def test_an_episode_ends_only_well_below_the_limit():
    assert stale("calculated", 40, was_stale=True)
    assert not stale("calculated", 40)
    assert not stale("calculated", 29, was_stale=True)
