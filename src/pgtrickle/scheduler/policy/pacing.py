"""When a stream table may be refreshed next: its interval, its tier, and how long its refreshes take."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, assert_never

from pgtrickle.model.tier import Tier
from pgtrickle.scheduler.policy.candidate import Candidate
from pgtrickle.scheduler.policy.cron import Cron
from pgtrickle.scheduler.policy.schedule import Calculated, Every, Manual

DEFAULT_INTERVAL: Final = timedelta(seconds=1)
"""The interval that the factor of a tier is applied to if a table has none of its own."""
STRETCH: Final = 1.2
"""A slow table rests for at least a sixth of the time, whatever its interval."""
FEWEST: Final = 3
"""Durations count only once this many refreshes are known."""


def interval(candidate: Candidate) -> timedelta | None:
    """The requested time between two refreshes, multiplied by the factor of its tier; None if there is none.

    A calculated table keeps the interval that its readers need. Without one, a hot table follows at once, and
    one of a lower tier waits at least two or ten seconds between refreshes. A tier does not move the
    moments of a cron schedule; only frozen stops them.
    """
    match candidate.schedule:
        case Every(asked):
            return asked * candidate.tier.factor
        case Calculated(needed) if needed is not None:
            return needed * candidate.tier.factor
        case Calculated():
            return None if candidate.tier is Tier.HOT else DEFAULT_INTERVAL * candidate.tier.factor
        case Manual() | Cron():
            return None
        case _:
            assert_never(candidate.schedule)


def pace(candidate: Candidate) -> timedelta:
    """The interval, stretched while refreshes take longer, so that a slow table does not use all the time."""
    asked = interval(candidate)
    if asked is None:
        return timedelta(0)
    typical = typical_duration(candidate)
    return asked if typical is None else max(asked, typical * STRETCH)


def next_refresh_at(candidate: Candidate, now: datetime) -> datetime:
    """The earliest moment of the next refresh."""
    last = candidate.last_refresh_at
    return now if last is None else last + pace(candidate)


def next_cron_moment(candidate: Candidate, cron: Cron, now: datetime) -> datetime:
    """The first moment of the schedule after the data it shows; one that passed during a refresh counts."""
    shown = candidate.data_timestamp or candidate.last_refresh_at
    return now if shown is None else cron.moment_after(shown)


def typical_duration(candidate: Candidate) -> timedelta | None:
    """The median duration of the latest refreshes, so that a single slow one does not count."""
    known = sorted(candidate.recent_durations)
    return known[len(known) // 2] if len(known) >= FEWEST else None
