"""The state of a stream table in one word, the same in every interface: fresh, or the kind of problem."""

from __future__ import annotations

from enum import Enum
from typing import Final

from pgtrickle.model.stream_table import Status
from pgtrickle.model.tier import Tier

SLACK_SECONDS: Final = 1.0
"""How much later than twice its interval a stream table may be."""
LATE_WITHOUT_INTERVAL_SECONDS: Final = 5.0
"""For `calculated`, which has no interval: it is refreshed as soon as something has changed."""


class StreamTableState(Enum):
    """What a person wants to know first. The members are in the order of urgency."""

    FAILING = "failing"
    SUSPENDED = "suspended"
    LATE = "late"
    WAITING = "waiting"
    INITIALIZING = "initializing"
    FRESH = "fresh"

    @property
    def urgency(self) -> int:
        """The position among the states; the smallest is the most urgent."""
        return list(StreamTableState).index(self)


def allowed_staleness(schedule: str, schedule_seconds: float | None, tier: Tier) -> float | None:
    """How old the data may be before a stream table counts as late, in seconds; None if there is no limit.

    `manual`, cron schedules and frozen stream tables have none: nobody promised when they are refreshed.
    """
    if tier is Tier.FROZEN:
        return None
    if schedule == "calculated":
        return LATE_WITHOUT_INTERVAL_SECONDS * tier.factor
    if schedule_seconds is None:
        return None
    return 2 * schedule_seconds * tier.factor + SLACK_SECONDS


def state_of(
    *,
    status: Status,
    consecutive_errors: int,
    is_populated: bool,
    waits: str | None,
    staleness_seconds: float | None,
    allowed_seconds: float | None,
) -> StreamTableState:
    """The most urgent state that applies."""
    if status is Status.SUSPENDED:
        return StreamTableState.SUSPENDED
    if status is Status.ERROR or consecutive_errors > 0:
        return StreamTableState.FAILING
    if not is_populated:
        return StreamTableState.INITIALIZING
    if waits is not None:
        return StreamTableState.WAITING
    is_late = (
        staleness_seconds is not None and allowed_seconds is not None and staleness_seconds > allowed_seconds
    )
    return StreamTableState.LATE if is_late else StreamTableState.FRESH
