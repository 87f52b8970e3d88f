"""Outages of the database: each is reported once when it begins and once when it is over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

STEADY_SECONDS: Final = 10.0
"""A connection that is lost again sooner belongs to the same outage."""


@dataclass(slots=True)
class Outage:
    """Whether the database is out of reach, by a clock that the caller reads.

    If the connection is lost again soon after it came back, that is told too. From then on the outage is over
    only once the connection has held for a while: a database that comes and goes does not fill the log.
    """

    _began_at: float | None = None
    _connected_at: float | None = None
    _told_end_at: float | None = None
    _is_unsteady: bool = False

    @property
    def is_on(self) -> bool:
        """Whether the database is, or may soon be again, out of reach."""
        return self._began_at is not None

    def begin(self, clock: float) -> bool:
        """The connection was lost; whether to tell."""
        self._connected_at = None
        if self._began_at is not None:
            return False
        self._is_unsteady = self._told_end_at is not None and clock - self._told_end_at < STEADY_SECONDS
        self._began_at = clock
        return True

    def end(self, clock: float) -> float | None:
        """The connection works; the seconds that the outage lasted, if it is time to report them."""
        if self._began_at is None:
            return None
        if self._connected_at is None:
            self._connected_at = clock
        if self._is_unsteady and clock - self._connected_at < STEADY_SECONDS:
            return None
        lasted, self._began_at, self._told_end_at = self._connected_at - self._began_at, None, clock
        return lasted
