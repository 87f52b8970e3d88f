"""The order in which queued units run: those somebody waits for, then the late ones, then the rest.

The queue is ordered again whenever a worker becomes free. The priority of a queued unit increases while it
waits, so no unit is starved by those queued after it.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from typing import Generic, TypeVar

from pgtrickle.model.stream_table import Status
from pgtrickle.scheduler.policy.candidate import Candidate
from pgtrickle.scheduler.policy.cron import Cron
from pgtrickle.scheduler.policy.pacing import DEFAULT_INTERVAL, next_cron_moment, pace
from pgtrickle.scheduler.policy.schedule import Calculated

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Urgency:
    """How urgent a unit is. A table that was never loaded counts as waited for; `patience` is its tier."""

    is_waited_for: bool
    deadline: datetime
    patience: int

    def sort_key(self, now: datetime) -> tuple[bool, float]:
        """A sort key; the greatest goes first.

        A unit is late once its deadline has passed. The lateness of a lower tier counts for less, so hot
        goes before warm and warm before cold, but a cold table is not starved.
        """
        lateness = (now - self.deadline).total_seconds()
        return self.is_waited_for, lateness / self.patience if lateness > 0 else lateness * self.patience


def urgency(candidate: Candidate, now: datetime) -> Urgency:
    """How urgent a stream table is."""
    is_new = candidate.status is Status.INITIALIZING or not candidate.is_populated
    return Urgency(candidate.refresh_requested or is_new, _deadline(candidate, now), candidate.tier.factor)


def group_urgency(members: list[Candidate], now: datetime) -> Urgency:
    """A group is as urgent as its most urgent member."""
    return max((urgency(member, now) for member in members), key=lambda urgency: urgency.sort_key(now))


@dataclass(slots=True)
class Queue(Generic[T]):
    """A queue ordered by urgency at the moment of taking; first in, first out among equals."""

    _lanes: dict[tuple[bool, int], list[tuple[datetime, int, Urgency, T]]] = field(default_factory=dict)
    _numbers: count[int] = field(default_factory=count)

    def __bool__(self) -> bool:
        return any(self._lanes.values())

    def put(self, thing: T, urgency: Urgency) -> None:
        """Add an item. Items of one lane keep their order however long they wait."""
        lane = self._lanes.setdefault((urgency.is_waited_for, urgency.patience), [])
        heapq.heappush(lane, (urgency.deadline, next(self._numbers), urgency, thing))

    def take(self, now: datetime) -> T:
        """Remove and return the most urgent item."""
        lanes = [lane for lane in self._lanes.values() if lane]
        first = max(lanes, key=lambda lane: (lane[0][2].sort_key(now), -lane[0][1]))
        return heapq.heappop(first)[3]

    def clear(self) -> None:
        """Remove all items."""
        self._lanes.clear()


def _deadline(candidate: Candidate, now: datetime) -> datetime:
    has_work = candidate.has_pending_changes or candidate.needs_reinit or candidate.status is Status.ERROR
    # without a known change, it is late only after it has missed a whole interval
    deadline = _turn(candidate, now)
    return deadline if has_work else deadline + max(pace(candidate), DEFAULT_INTERVAL)


def _turn(candidate: Candidate, now: datetime) -> datetime:
    if isinstance(candidate.schedule, Cron):
        return next_cron_moment(candidate, candidate.schedule, now)
    last = candidate.last_refresh_at
    if last is None:
        return now
    # a table that follows at once has no interval, so the one refreshed longest ago goes first
    follows_at_once = isinstance(candidate.schedule, Calculated)
    return last + (max(pace(candidate), DEFAULT_INTERVAL) if follows_at_once else pace(candidate))
