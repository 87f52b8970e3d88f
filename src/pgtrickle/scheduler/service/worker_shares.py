"""Shares the workers of a process among its databases.

Each database always has its quota, so a slow one cannot take the last worker from the others. Beyond its
quota, a database uses workers that nobody else needs. When one becomes free, the database that uses the
smallest part of its quota goes first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple


class ShareUsage(NamedTuple):
    """How many workers a database uses, how many it always has, and whether it waits for more."""

    used: int
    quota: int
    is_waiting: bool


class WorkerShares:
    """The workers of one process. Safe to use from many threads.

    At most `workers` refreshes run at the same time, or as many as all quotas together if that is more.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._lock = threading.Lock()
        self._shares: list[WorkerShare] = []
        self._used = 0

    def join(self, quota: int) -> WorkerShare:
        """A new database."""
        share = WorkerShare(self, quota)
        with self._lock:
            self._shares.append(share)
        return share

    def leave(self, share: WorkerShare) -> None:
        """Forget a database. What it still runs gives its workers back later."""
        with self._lock:
            self._shares.remove(share)

    def _take(self, share: WorkerShare) -> bool:
        with self._lock:
            share.is_waiting = share.used >= share.quota and self._used >= self.workers
            if not share.is_waiting:
                share.used += 1
                self._used += 1
            return not share.is_waiting

    def _give_back(self, share: WorkerShare) -> None:
        with self._lock:
            share.used -= 1
            self._used -= 1
            waiting = sorted(
                (other for other in self._shares if other.is_waiting), key=lambda o: o.used / o.quota
            )
        # without the lock: they take workers, under locks of their own
        for other in waiting:
            other.on_free()


@dataclass(eq=False, slots=True)
class WorkerShare:
    """The part of one database. `on_free` is called, in any thread, when `take` may succeed again."""

    shares: WorkerShares
    quota: int
    used: int = 0
    is_waiting: bool = False
    on_free: Callable[[], None] = field(default=lambda: None)

    @property
    def limit(self) -> int:
        """The most workers that the database can have at the same time."""
        return max(self.quota, self.shares.workers)

    def take(self) -> bool:
        """Take a worker, if one is free for this database."""
        return self.shares._take(self)

    def give_back(self) -> None:
        """Give a worker back. The caller must hold no lock."""
        self.shares._give_back(self)

    def usage(self) -> ShareUsage:
        """How many workers it uses now."""
        return ShareUsage(self.used, self.quota, self.is_waiting)
