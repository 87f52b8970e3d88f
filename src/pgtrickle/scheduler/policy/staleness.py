"""Finds stream tables whose changes have waited longer than their schedules allow."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, assert_never

from pgtrickle.model.tier import Tier
from pgtrickle.scheduler.policy.cron import Cron
from pgtrickle.scheduler.policy.pacing import DEFAULT_INTERVAL
from pgtrickle.scheduler.policy.schedule import Calculated, Every, Manual, Schedule

_EASED: Final = 0.5
"""An episode ends when a change waits for less than this share of the limit, so that it does not flutter."""


def is_stale(
    schedule: Schedule, tier: Tier, shown_until: datetime, now: datetime, limit: timedelta, *, was_stale: bool
) -> bool:
    """Whether a change has waited for `limit` longer than the schedule allows.

    `shown_until` is the moment before which every change is shown. A table that is refreshed only on request
    is never stale.
    """
    due = _due_at(schedule, tier, shown_until)
    return due is not None and now > due + (limit * _EASED if was_stale else limit)


def _due_at(schedule: Schedule, tier: Tier, shown_until: datetime) -> datetime | None:
    """When the oldest change that is not shown should have been shown."""
    if tier is Tier.FROZEN:
        return None
    match schedule:
        case Every(interval):
            return shown_until + interval * tier.factor
        case Calculated(interval):
            eased = DEFAULT_INTERVAL * tier.factor if tier is not Tier.HOT else timedelta(0)
            return shown_until + (eased if interval is None else interval * tier.factor)
        case Cron():
            return schedule.moment_after(shown_until)
        case Manual():
            return None
        case _:
            assert_never(schedule)
