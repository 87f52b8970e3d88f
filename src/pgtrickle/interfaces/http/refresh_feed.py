"""Which refreshes of the catalog are new, and not known from an event of this process."""

from __future__ import annotations

from collections import Counter, deque
from typing import Final

from pgtrickle.commands.monitoring import read_refreshes
from pgtrickle.commands.status import PastRefresh
from pgtrickle.postgres.connection import Connection

OVERLAP: Final = 500
"""Refreshes get their numbers before they commit, so some with lower numbers may still appear."""
MOST_NEW: Final = 2000
FAILED: Final = -1.0
"""Stands for the duration of a failure, which its event does not tell."""


class RefreshFeed:
    """Reads the history of all stream tables from where it was read last."""

    def __init__(self) -> None:
        self._last = 0
        self._seen: set[int] = set()
        self._announced: Counter[tuple[str, float]] = Counter()
        self._told: deque[tuple[str, float]] = deque(maxlen=OVERLAP)

    def begin(self, connection: Connection) -> None:
        """Regard everything as known."""
        found = read_refreshes(connection, limit=OVERLAP)
        self._last = found[0].refresh_id if found else 0
        self._seen = {past.refresh_id for past in found}
        self._announced.clear()

    def announce(self, name: str, milliseconds: float) -> bool:
        """Note an event of this process; returns whether it is new.

        The history may have shown the refresh first: it commits before its event arrives. Otherwise it is not
        new when the history shows it later.
        """
        key = (name, round(milliseconds, 2))
        if key in self._told:
            self._told.remove(key)
            return False
        self._announced[key] += 1
        return True

    def new_refreshes(self, connection: Connection) -> list[PastRefresh]:
        """The refreshes that have not been reported yet, oldest first."""
        found = read_refreshes(connection, limit=MOST_NEW, after=self._last - OVERLAP)
        new = []
        for past in reversed(found):
            if past.refresh_id in self._seen:
                continue
            self._seen.add(past.refresh_id)
            key = (str(past.name), FAILED if past.status == "FAILED" else round(past.milliseconds, 2))
            if self._announced[key] > 0:
                self._announced[key] -= 1
            else:
                self._told.append(key)
                new.append(past)
        if found:
            self._last = max(self._last, found[0].refresh_id)
        self._seen = {number for number in self._seen if number > self._last - OVERLAP}
        if not new:
            # those that are left have no history, for example because their stream table was dropped
            self._announced.clear()
        return new
