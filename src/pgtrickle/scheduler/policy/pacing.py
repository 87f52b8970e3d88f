"""When a stream table's next turn comes: its interval, its tier, and how long its refreshes take."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, assert_never

from pgtrickle.model.tier import Tier
from pgtrickle.scheduler.policy.candidate import Candidate
from pgtrickle.scheduler.policy.cron import Cron
from pgtrickle.scheduler.policy.schedule import Calculated, Every, Manual

DEFAULT_INTERVAL: Final = timedelta(seconds=1)
"""What the factor of a tier is applied to where a table has no interval of its own."""
STRETCH: Final = 1.2
"""A table is left alone for a sixth of the time at least, whatever its interval."""
FEWEST: Final = 3
"""So many refreshes must be known before their durations count."""


def interval(candidate: Candidate) -> timedelta | None:
    """The time between two refreshes that was asked for, with its tier; None if no interval was.

    A calculated table keeps the interval that its readers need. Without one it follows at once if its tier
    is hot; of a lower tier, it leaves at least two or ten
    seconds between refreshes. Cron moments are moments: of the tiers, only frozen changes anything.
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
    """The interval, stretched while refreshes take longer: a slow table must not take all the time."""
    asked = interval(candidate)
    if asked is None:
        return timedelta(0)
    typical = typical_duration(candidate)
    return asked if typical is None else max(asked, typical * STRETCH)


def next_refresh_at(candidate: Candidate, now: datetime) -> datetime:
    """When the pace allows the next refresh."""
    last = candidate.last_refresh_at
    return now if last is None else last + pace(candidate)


def next_cron_moment(candidate: Candidate, cron: Cron, now: datetime) -> datetime:
    """The first cron moment that the table does not show yet: one that passed during a refresh counts."""
    shown = candidate.data_timestamp or candidate.last_refresh_at
    return now if shown is None else cron.moment_after(shown)


def typical_duration(candidate: Candidate) -> timedelta | None:
    """The median of the latest refreshes: one that was slow by chance does not count."""
    known = sorted(candidate.recent_durations)
    return known[len(known) // 2] if len(known) >= FEWEST else None
