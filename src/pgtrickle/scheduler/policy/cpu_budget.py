"""How much CPU time the sidecar may use, and how much it has used: whether more refreshes may start now.

The budget grows by the share each second, and what was used is taken from it. Unused time is kept for a
moment only, and a debt is limited as well, so neither a quiet hour nor one long refresh counts for long.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

from pgtrickle.model.stream_table import Status, StreamTableId
from pgtrickle.scheduler.policy.candidate import Candidate
from pgtrickle.scheduler.policy.pacing import interval
from pgtrickle.scheduler.policy.schedule import Calculated

KEPT_SECONDS: Final = 0.5
"""Unused time is kept for this many seconds."""
DEBT_SECONDS: Final = 10.0
"""A debt is paid back within this many seconds, however large it was."""
CROWDED_DEBT_SECONDS: Final = 2.0
"""The same while the machine is crowded: the share is small then, and nobody may wait for long."""
LONGEST_WAIT: Final = 3.0
"""A stream table that has waited for this many seconds is refreshed without a budget, one at a time."""
POLLS: Final = 20
"""How many polls say whether the application is idle."""
BUSY_POLLS: Final = POLLS // 2
"""It is not while this many of them found that it has written."""
BUSY_CORES: Final = 0.3
"""Nor while others use this much of the machine: a core, or a part of one."""
CROWDED: Final = 0.75
"""The machine is crowded while this part of its cores is in use: commits also wait for the disk."""
_SMOOTH: Final = 0.2
_FORGOTTEN: Final = 0.97


@dataclass(frozen=True, slots=True)
class CpuBudget:
    """The budget as of a moment `at`, in seconds; `credit` are the CPU seconds that are left."""

    share: float
    cores: float
    crowded_share: float | None = None
    """The share while the machine is crowded, if it is less then."""
    credit: float = 0.0
    at: float | None = None
    used: float = 0.0
    """How many CPU seconds per second were used lately."""
    is_idle: bool = True
    """Whether the application is idle, so that all cores may be used."""
    is_crowded: bool = False
    """Whether the cores are in use, so that every CPU second is taken from somebody else."""

    @property
    def allowed(self) -> float:
        """How many CPU seconds per second may be used now."""
        if self.is_idle:
            return self.cores
        return self.share if self.crowded_share is None or not self.is_crowded else self.crowded_share

    def after(self, now: float, used: float, *, is_idle: bool, others: float = 0.0) -> CpuBudget:
        """The budget after these CPU seconds were used; `others` are the cores that others use."""
        if self.at is None:
            return replace(self, at=now, credit=KEPT_SECONDS * self.share, is_idle=is_idle)
        passed = max(now - self.at, 0.0)
        is_crowded = self.used + others >= CROWDED * self.cores
        allowed = replace(self, is_idle=is_idle, is_crowded=is_crowded).allowed
        left = self.credit + allowed * passed - used
        least = -CROWDED_DEBT_SECONDS * allowed if allowed < self.share else -DEBT_SECONDS * self.share
        credit = max(min(left, KEPT_SECONDS * allowed), least)
        weight = min(1.0, _SMOOTH * passed / 0.1)
        rate = self.used + weight * (used / passed - self.used) if passed else self.used
        return replace(self, at=now, credit=credit, used=rate, is_idle=is_idle, is_crowded=is_crowded)

    def may_start(self, running: int, waited: float = 0.0) -> bool:
        """Whether a unit of paced stream tables that has waited may start while this many others run."""
        if self.is_idle or (waited >= LONGEST_WAIT and running == 0):
            return True
        return self.credit > 0 and running < max(1, int(self.share))


@dataclass(frozen=True, slots=True)
class Activity:
    """What the last polls found of the application."""

    wrote: tuple[bool, ...] = ()
    others: float = 0.0
    """How many cores others have used lately; 0 if that is not known."""

    def after(self, *, wrote: bool, others: float) -> Activity:
        """The same with one more poll."""
        return Activity((*self.wrote, wrote)[-POLLS:], self.others + _SMOOTH * (others - self.others))

    @property
    def is_idle(self) -> bool:
        """Whether the application leaves the machine to the sidecar."""
        return sum(self.wrote) < BUSY_POLLS and self.others < BUSY_CORES


def is_paced(candidate: Candidate) -> bool:
    """Whether a stream table waits for the budget: one that follows its sources as fast as possible.

    What somebody waits for, a first load, a retry and a schedule of its own do not wait.
    """
    is_urgent = candidate.refresh_requested or candidate.status is not Status.ACTIVE
    owes_load = candidate.needs_reinit or not candidate.is_populated
    follows = isinstance(candidate.schedule, Calculated) and interval(candidate) is None
    return follows and not is_urgent and not owes_load


@dataclass(slots=True)
class HeldBack:
    """The stream tables that wait for the budget, the one that waits longest first.

    `seconds` is how long they waited lately, which is the pace at which each of them is refreshed.
    """

    seconds: float = 0.0
    _since: dict[StreamTableId, float] = field(default_factory=dict)
    _order: deque[StreamTableId] = field(default_factory=deque)

    def __len__(self) -> int:
        return len(self._since)

    def add(self, tables: Iterable[StreamTableId], now: float) -> None:
        """Let these wait too."""
        for table in tables:
            if table not in self._since:
                self._since[table] = now
                self._order.append(table)

    def first(self, count: int) -> tuple[StreamTableId, ...]:
        """Those that wait longest; they keep their place until `release`."""
        return tuple(islice(self._order, count))

    def waited(self, now: float) -> float:
        """How long the first one has waited; 0 if there is none."""
        return now - self._since[self._order[0]] if self._order else 0.0

    def release(self, tables: Iterable[StreamTableId], now: float) -> None:
        """These wait no longer."""
        gone = {table: self._since.pop(table) for table in tables if table in self._since}
        if gone:
            self._order = deque(table for table in self._order if table not in gone)
        for since in gone.values():
            self.seconds += _SMOOTH * (now - since - self.seconds)

    def pace(self, now: float) -> float:
        """How long a stream table waits; 0 if none does."""
        oldest = self.waited(now)
        if not self._order:
            self.seconds *= _FORGOTTEN
        return max(oldest, self.seconds) if self._order or self.seconds > 0.1 else 0.0
