"""Polls a database in the background for a screen, and goes on when the database is away for a while."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from pgtrickle.commands.connections import open_installed
from pgtrickle.interfaces.cli.error_reporting import error_line
from pgtrickle.model.errors import ConnectionFailed, PgTrickleError
from pgtrickle.postgres.connection import Connection, DatabaseError, to_error

T = TypeVar("T")

PATIENCE_SECONDS: Final = 30.0
"""A poll that has not ended by then is abandoned: the server may have vanished without a word."""
_SHARE: Final = 4
"""The pause after a poll is at least this many times as long as the poll, so that watching costs little."""


@dataclass(frozen=True, slots=True)
class Polled(Generic[T]):
    """The newest value, and if the database is away, why and for how long."""

    value: T | None = None
    trouble: str | None = None
    away_seconds: float = 0.0
    number: int = 0
    """How many polls have ended; it grows with each."""


class Poller(Generic[T]):
    """Calls `read` again and again on one connection, in a thread that does not keep the process alive.

    A database that is away is tried again. Any other error ends the polling and is raised by `latest`.
    """

    def __init__(self, dsn: str, read: Callable[[Connection], T], seconds: float) -> None:
        self._dsn, self._read, self._seconds = dsn, read, seconds
        self._changed = threading.Condition()
        self._value: T | None = None
        self._trouble: str | None = None
        self._failure: PgTrickleError | None = None
        self._away_since: float | None = None
        self._began: float | None = None
        self._number = 0
        self._generation = 0
        self._asked = threading.Event()
        self._start()

    def latest(self) -> Polled[T]:
        """What is known now. Raises the error that ended the polling."""
        with self._changed:
            if self._failure is not None:
                raise self._failure
            self._abandon_if_stuck()
            now = time.monotonic()
            away = 0.0 if self._away_since is None else now - self._away_since
            return Polled(self._value, self._trouble, away, self._number)

    def wait(self, number: int, seconds: float) -> None:
        """Return when more than `number` polls have ended, or after `seconds`."""
        with self._changed:
            self._changed.wait_for(lambda: self._number > number or self._failure is not None, seconds)

    def poll_now(self) -> None:
        """Do not wait for the next poll."""
        self._asked.set()

    def stop(self) -> None:
        """Start no more polls."""
        with self._changed:
            self._generation += 1
        self._asked.set()

    def _start(self) -> None:
        self._generation += 1
        self._began = time.monotonic()
        threading.Thread(target=self._run, args=(self._generation,), name="poller", daemon=True).start()

    def _abandon_if_stuck(self) -> None:
        if self._began is None or time.monotonic() - self._began < PATIENCE_SECONDS:
            return
        self._away_since = self._away_since or self._began
        self._trouble = f"the database has not answered for {PATIENCE_SECONDS:.0f} s"
        self._start()

    def _run(self, generation: int) -> None:
        while self._is_current(generation):
            try:
                with open_installed(self._dsn) as connection:
                    while self._is_current(generation):
                        took = self._poll(connection, generation)
                        self._pause(max(self._seconds, _SHARE * took), generation)
            except (PgTrickleError, DatabaseError) as error:
                self._note(error if isinstance(error, PgTrickleError) else to_error(error), generation)
                self._pause(self._seconds, generation)

    def _poll(self, connection: Connection, generation: int) -> float:
        began = time.monotonic()
        value = self._read(connection)
        with self._changed:
            if generation == self._generation:
                self._value, self._trouble, self._away_since = value, None, None
                self._number += 1
                self._began = None
                self._changed.notify_all()
        return time.monotonic() - began

    def _note(self, error: PgTrickleError, generation: int) -> None:
        with self._changed:
            if generation != self._generation:
                return
            if isinstance(error, ConnectionFailed) and self._number:
                self._trouble = error_line(error)
                self._away_since = self._away_since or time.monotonic()
            else:
                # the first poll tells a wrong address or a missing installation at once
                self._failure = error
                self._generation += 1
            self._number += 1
            self._began = None
            self._changed.notify_all()

    def _pause(self, seconds: float, generation: int) -> None:
        self._asked.wait(seconds)
        self._asked.clear()
        with self._changed:
            if generation == self._generation:
                self._began = time.monotonic()

    def _is_current(self, generation: int) -> bool:
        with self._changed:
            return generation == self._generation
