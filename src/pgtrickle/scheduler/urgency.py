"""Who goes first when more is due than can be done at once: urgent before late before idle."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import IntEnum

from pgtrickle.model.stream_table import Status
from pgtrickle.scheduler.candidate import Candidate
from pgtrickle.scheduler.cron import Cron
from pgtrickle.scheduler.schedule import Calculated
from pgtrickle.scheduler.turn import UNHURRIED, next_moment, pace


class Urgency(IntEnum):
    """URGENT: somebody waits for it, or it was never loaded. LATE: changes wait, past its deadline.

    IDLE: the rest: its time has not come, or nobody knows of a change and it has not missed a whole turn.
    """

    URGENT = 0
    LATE = 1
    IDLE = 2


def urgency(candidate: Candidate, now: datetime) -> tuple[int, float, int]:
    """A key that sorts: the least first.

    Among the late the latest goes first; a lower tier counts its lateness for less, so that hot goes
    before warm before cold, but nobody waits for ever.
    """
    lateness = now - _deadline(candidate, now)
    weight = lateness.total_seconds() / candidate.tier.factor
    return (_kind(candidate, lateness), -weight, candidate.id)


def group_urgency(members: list[Candidate], now: datetime) -> tuple[int, float, int]:
    """A group is as urgent as its most urgent member."""
    return min(urgency(member, now) for member in members)


def _kind(candidate: Candidate, lateness: timedelta) -> Urgency:
    if candidate.refresh_requested or candidate.status is Status.INITIALIZING or not candidate.is_populated:
        return Urgency.URGENT
    has_work = candidate.has_pending_changes or candidate.needs_reinit or candidate.status is Status.ERROR
    allowed = timedelta(0) if has_work else max(pace(candidate), UNHURRIED)
    return Urgency.LATE if lateness > allowed else Urgency.IDLE


def _deadline(candidate: Candidate, now: datetime) -> datetime:
    if isinstance(candidate.schedule, Cron):
        return next_moment(candidate, candidate.schedule, now)
    last = candidate.last_refresh_at
    if last is None:
        return now
    # one that follows at once has no interval: the one that was not served for longest goes first
    allowed = (
        max(pace(candidate), UNHURRIED) if isinstance(candidate.schedule, Calculated) else pace(candidate)
    )
    return last + allowed
