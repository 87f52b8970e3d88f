"""What is due at a tick, case by case."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from pgtrickle.model.stream_table import Status, StreamTableId
from pgtrickle.model.tier import Tier
from pgtrickle.scheduler.policy.due import CHECK_INTERVAL, Candidate, due, next_check
from pgtrickle.scheduler.policy.graph import Graph
from pgtrickle.scheduler.policy.schedule import parse_schedule
from tests.scheduler.graphs import node

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
ALONE = Graph.of([node(1)])
CHAIN = Graph.of([node(1), node(2, (1,)), node(3, (2,))])


def table(number: int = 1, schedule: str | None = "calculated") -> Candidate:
    """An active table, refreshed ten seconds ago, with nothing to do."""
    return Candidate(
        id=StreamTableId(number),
        schedule=parse_schedule(schedule),
        status=Status.ACTIVE,
        is_populated=True,
        last_refresh_at=NOW - 10 * SECOND,
        has_pending_changes=False,
    )


def changed(number: int = 1, schedule: str | None = "calculated") -> Candidate:
    """The same, with changes waiting."""
    return replace(table(number, schedule), has_pending_changes=True)


def is_due(candidate: Candidate) -> bool:
    return due([candidate], NOW, ALONE) == (1,)


def test_a_calculated_table_is_due_when_a_source_changed() -> None:
    assert is_due(changed())
    assert not is_due(table())


def test_a_calculated_table_is_not_due_for_time_alone() -> None:
    assert not is_due(replace(table(), always=True))


def test_a_calculated_table_that_compares_is_due_once_a_minute() -> None:
    compares = replace(table(), compares=True)
    assert not is_due(replace(compares, last_refresh_at=NOW - 59 * SECOND))
    assert is_due(replace(compares, last_refresh_at=NOW - 60 * SECOND))
    assert not is_due(replace(table(), last_refresh_at=NOW - 60 * SECOND))


def test_an_interval_is_due_when_it_has_come_and_there_are_changes() -> None:
    assert is_due(changed(schedule="10s"))
    assert not is_due(changed(schedule="11s"))
    assert not is_due(table(schedule="10s"))
    assert is_due(replace(changed(schedule="1w"), last_refresh_at=None))


@pytest.mark.parametrize(
    "reason", [{"always": True}, {"compares": True}, {"needs_reinit": True}, {"is_populated": False}]
)
def test_an_interval_without_changes_is_due_for_other_work(reason: dict[str, bool]) -> None:
    assert is_due(replace(table(schedule="10s"), **reason))  # type: ignore[arg-type]
    assert not is_due(replace(table(schedule="11s"), **reason))  # type: ignore[arg-type]


def test_a_cron_table_is_due_once_a_moment_has_passed_changes_or_not() -> None:
    hourly = replace(table(schedule="@hourly"), last_refresh_at=NOW - timedelta(minutes=10))
    assert is_due(hourly)  # NOW is a full hour
    assert not is_due(replace(hourly, last_refresh_at=NOW, has_pending_changes=True))
    assert is_due(replace(hourly, last_refresh_at=None))


def test_missed_moments_of_cron_are_made_up_for_once() -> None:
    late = replace(table(schedule="* * * * *"), last_refresh_at=NOW - timedelta(days=3))
    assert is_due(late)
    assert not is_due(replace(late, last_refresh_at=NOW))


def test_a_moment_that_passed_while_a_refresh_ran_is_not_lost() -> None:
    began_before = replace(
        table(schedule="@hourly"), last_refresh_at=NOW + SECOND, data_timestamp=NOW - SECOND
    )
    assert due([began_before], NOW + 2 * SECOND, ALONE) == (1,)


@pytest.mark.parametrize(("tier", "seconds"), [(Tier.HOT, 1), (Tier.WARM, 2), (Tier.COLD, 10)])
def test_a_tier_makes_intervals_longer(tier: Tier, seconds: int) -> None:
    tiered = replace(changed(schedule="1s"), tier=tier, last_refresh_at=NOW)
    assert due([tiered], NOW + seconds * SECOND, ALONE) == (1,)
    assert due([tiered], NOW + seconds * SECOND - SECOND / 100, ALONE) == ()
    assert next_check(tiered, NOW) == NOW + seconds * SECOND


@pytest.mark.parametrize(("tier", "seconds"), [(Tier.HOT, 0), (Tier.WARM, 2), (Tier.COLD, 10)])
def test_a_tier_makes_a_calculated_table_leave_time_between_refreshes(tier: Tier, seconds: int) -> None:
    tiered = replace(changed(), tier=tier, last_refresh_at=NOW)
    assert due([tiered], NOW + seconds * SECOND, ALONE) == (1,)
    assert seconds == 0 or due([tiered], NOW + (seconds - 1) * SECOND, ALONE) == ()


@pytest.mark.parametrize("schedule", ["calculated", "1s", "* * * * *"])
def test_a_frozen_table_is_due_only_on_request(schedule: str) -> None:
    frozen = replace(changed(schedule=schedule), tier=Tier.FROZEN, last_refresh_at=None)
    assert not is_due(frozen)
    assert not is_due(replace(frozen, status=Status.INITIALIZING, is_populated=False))
    assert next_check(frozen, NOW) is None
    assert is_due(replace(frozen, refresh_requested=True))


def test_a_gated_table_is_not_due_whoever_asks() -> None:
    gated = replace(changed(), is_gated=True, refresh_requested=True)
    assert not is_due(gated)
    assert next_check(gated, NOW) is None


def test_a_calculated_table_that_must_be_loaded_again_is_due_without_changes() -> None:
    assert is_due(replace(table(), needs_reinit=True))


def test_a_manual_table_is_due_only_on_request() -> None:
    assert not is_due(replace(changed(schedule=None), needs_reinit=True, always=True))
    assert is_due(replace(table(schedule=None), refresh_requested=True))


def test_a_request_does_not_wait_for_the_interval() -> None:
    assert is_due(replace(table(schedule="1w"), refresh_requested=True))


def test_a_suspended_table_is_never_due() -> None:
    assert not is_due(replace(changed(), status=Status.SUSPENDED, refresh_requested=True, needs_reinit=True))


@pytest.mark.parametrize("schedule", [None, "calculated", "1w"])
def test_a_new_table_is_due_at_once_whatever_its_schedule(schedule: str | None) -> None:
    new = replace(table(schedule=schedule), status=Status.INITIALIZING, is_populated=False)
    assert is_due(new)
    assert not is_due(replace(new, retry_at=NOW + SECOND))
    assert is_due(replace(new, retry_at=NOW))


@pytest.mark.parametrize("schedule", ["calculated", "1w"])
def test_a_failed_table_is_due_when_its_retry_has_come_and_not_before(schedule: str) -> None:
    failed = replace(table(schedule=schedule), status=Status.ERROR)
    assert is_due(replace(failed, retry_at=NOW))
    assert not is_due(replace(failed, retry_at=NOW + SECOND, has_pending_changes=True))
    assert not is_due(replace(failed, retry_at=None, has_pending_changes=True))


def test_a_request_does_not_wait_for_the_retry_of_a_failed_table() -> None:
    for retry_at in (NOW + 60 * SECOND, None):
        failed = replace(changed(), status=Status.ERROR, retry_at=retry_at)
        assert not is_due(failed)
        assert is_due(replace(failed, refresh_requested=True))


def test_a_failed_manual_table_is_tried_again_only_on_request() -> None:
    failed = replace(changed(schedule=None), status=Status.ERROR, retry_at=NOW)
    assert not is_due(failed)
    assert is_due(replace(failed, refresh_requested=True))


def test_a_reader_is_due_with_the_table_it_reads() -> None:
    assert due([table(3), table(2), changed(1)], NOW, CHAIN) == (1, 2, 3)


def test_a_reader_with_an_interval_waits_for_it() -> None:
    assert due([changed(1), table(2, "10s"), table(3, "11s")], NOW, CHAIN) == (1, 2)


def test_what_is_not_refreshed_feeds_nobody() -> None:
    assert due([changed(1), table(2, None), table(3)], NOW, CHAIN) == (1,)
    assert due([changed(1), replace(table(2), status=Status.SUSPENDED), table(3)], NOW, CHAIN) == (1,)


def test_one_failed_arm_of_a_diamond_leaves_the_rest_due() -> None:
    diamond = Graph.of([node(1), node(2, (1,)), node(3, (1,)), node(4, (2, 3))])
    failed = replace(table(2), status=Status.ERROR, retry_at=NOW + SECOND)
    assert due([changed(1), failed, table(3), table(4)], NOW, diamond) == (1, 3, 4)


def test_a_table_that_the_graph_does_not_know_waits() -> None:
    assert due([changed(1), changed(7)], NOW, ALONE) == (1,)


@pytest.mark.parametrize(
    ("candidate", "expected"),
    [
        (table(schedule=None), None),
        (table(schedule="calculated"), NOW + CHECK_INTERVAL),
        (table(schedule="15s"), NOW + 5 * SECOND),
        (table(schedule="500ms"), NOW + SECOND / 2),
        (changed(schedule="10s"), NOW + CHECK_INTERVAL),
        (replace(table(schedule="@hourly"), last_refresh_at=NOW), NOW + timedelta(hours=1)),
        (table(schedule="@hourly"), NOW + CHECK_INTERVAL),
        (replace(table(), status=Status.SUSPENDED), None),
        (replace(table(), status=Status.ERROR), None),
        (replace(table(), status=Status.ERROR, retry_at=NOW + 3 * SECOND), NOW + 3 * SECOND),
        (replace(table(schedule=None), status=Status.INITIALIZING), NOW + CHECK_INTERVAL),
    ],
)
def test_the_next_look_is_when_time_may_make_it_due(candidate: Candidate, expected: datetime | None) -> None:
    assert next_check(candidate, NOW) == expected
