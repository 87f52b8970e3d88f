"""A bounded number of connections to one database, shared by the threads of a process and its Spark tasks.

Whoever needs several connections takes them at once, in the order of asking, so that nobody holds one and
waits for another. A refresh that lets Spark's tasks connect holds two already, so a few places are kept
for such a one: there is always one that can go on, and then the next.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

from pgtrickle.model.errors import Abandoned, NoConnectionFree, TooFewConnections, UnsuitableSetting
from pgtrickle.model.settings import MAX_CONNECTIONS, Pooling
from pgtrickle.postgres.connection import Connection, DatabaseError, connect
from pgtrickle.postgres.liveness import close_quietly, is_alive, roll_back
from pgtrickle.postgres.temp_files import TempFiles, limit_temp_files

FOR_TASKS: Final = 2
"""A task reads on one connection and writes on another."""
FOR_REFRESH: Final = 2
"""A refresh writes on one connection and reads on another."""
LEAST: Final = 1 + FOR_REFRESH + FOR_TASKS
"""One to look, one refresh, and its tasks."""
PATIENCE_SECONDS: Final = 300.0
CANCEL_SECONDS: Final = 2.0
TASKS_PATIENCE_SECONDS: Final = 1800.0
"""Another large refresh may be under way, which takes as long as it takes."""


def check_enough(most: int) -> None:
    """Raise unless a refresh can finish with so many connections."""
    if most < LEAST:
        raise TooFewConnections(
            f"{most} connections are too few: one looks, a refresh has {FOR_REFRESH},"
            f" and its tasks {FOR_TASKS} more",
            hint=f"allow at least {LEAST} connections",
        )


class _Opened(NamedTuple):
    """A connection, and of which generation it is: those before the last renewal are not kept."""

    connection: Connection
    age: int
    thread: int = 0
    """Who has it."""


class Pool:
    """At most `most` connections; safe to use from many threads."""

    def __init__(
        self,
        dsn: str,
        most: int = MAX_CONNECTIONS.default,
        pooling: Pooling = Pooling.AUTO,
        *,
        temp_file_limit: str | None = None,
        patience: float = PATIENCE_SECONDS,
        tasks_patience: float = TASKS_PATIENCE_SECONDS,
    ) -> None:
        check_enough(most)
        self.dsn, self.most = dsn, most
        self._patience, self._tasks_patience = patience, tasks_patience
        self._is_pooled = {Pooling.AUTO: None, Pooling.YES: True, Pooling.NO: False}[pooling]
        self._temp_file_limit = temp_file_limit
        self.temp_files: TempFiles | None = None
        """What bounds the temporary files of our connections, once there is one; None where nobody asks."""
        self._changed = threading.Condition()
        self._idle: list[_Opened] = []
        self._in_use: list[_Opened] = []
        self._cancelled: set[int] = set()
        self._has_given_up = threading.Event()
        self._held = self._lent = self._age = 0
        self._taking: deque[object] = deque()
        self._lending: deque[object] = deque()

    @property
    def is_pooled(self) -> bool:
        """Whether a pooler stands between us and the server; found out by the first connection."""
        if self._is_pooled is None:
            with self.connection():
                pass
        return bool(self._is_pooled)

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection in a fresh transaction; what was not committed is rolled back afterwards."""
        with self.connections(1) as (connection,):
            yield connection

    @contextmanager
    def autocommitting(self) -> Iterator[Connection]:
        """A connection on which each statement is a transaction of its own."""
        with self.connection() as connection:
            connection.autocommit = True
            try:
                yield connection
            finally:
                if roll_back(connection):
                    connection.autocommit = False

    @contextmanager
    def connections(self, count: int) -> Iterator[tuple[Connection, ...]]:
        """So many connections, all at once. Nobody may ask for more while holding any."""
        self._take(count)
        taken: list[_Opened] = []
        try:
            for _ in range(count):
                taken.append(self._opened()._replace(thread=threading.get_ident()))
            with self._changed:
                self._in_use += taken
            yield tuple(opened.connection for opened in taken)
        finally:
            self._give_back(count, taken)

    @contextmanager
    def places(self, wanted: int) -> Iterator[int]:
        """Leave to others to open connections, for somebody who holds some: at least `FOR_TASKS`.

        Of what is free beyond that, room for one more refresh is left.
        """
        count = self._lend(wanted)
        try:
            yield count
        finally:
            with self._changed:
                self._lent -= count
                self._changed.notify_all()

    @property
    def is_abandoned(self) -> bool:
        """Whether what ran was given up."""
        return self._has_given_up.is_set()

    def abandon(self) -> None:
        """Cancel what runs on every connection, and give out none any more."""
        self._has_given_up.set()
        with self._changed:
            running = [opened.connection for opened in self._in_use]
            self._changed.notify_all()
        for connection in running:
            with suppress(DatabaseError):
                connection.cancel_safe(timeout=CANCEL_SECONDS)

    def cancel(self, thread: int) -> None:
        """Cancel what runs on the connections of a thread.

        They are closed when they are given back: a request to cancel may arrive late, and must not meet a
        statement of somebody else.
        """
        with self._changed:
            running = [opened for opened in self._in_use if opened.thread == thread]
            self._cancelled |= {id(opened.connection) for opened in running}
        for opened in running:
            with suppress(DatabaseError):
                opened.connection.cancel_safe(timeout=CANCEL_SECONDS)

    def renew(self) -> None:
        """Let go of every connection; those in use when they are given back."""
        with self._changed:
            self._age += 1
            self._close_idle(len(self._idle))

    def close(self) -> None:
        """Leave the database; what is still in use closes when it is given back."""
        self.renew()

    def _take(self, count: int) -> None:
        def is_free() -> bool:
            return self._held + count + max(self._lent, FOR_TASKS) <= self.most

        with self._turn(self._taking, is_free, self._patience):
            self._held += count

    def _lend(self, wanted: int) -> int:
        def free() -> int:
            return self.most - self._held - self._lent

        with self._turn(self._lending, lambda: free() >= FOR_TASKS, self._tasks_patience):
            count = max(FOR_TASKS, min(wanted, free() - FOR_REFRESH))
            self._lent += count
            # what lies idle is connected too
            self._close_idle(self._held + len(self._idle) + self._lent - self.most)
            return count

    @contextmanager
    def _turn(self, queue: deque[object], is_free: Callable[[], bool], patience: float) -> Iterator[None]:
        """Wait in line until it is our turn and there is room; then go on, holding the lock."""
        ticket, deadline = object(), time.monotonic() + patience
        with self._changed:
            queue.append(ticket)
            try:
                while queue[0] is not ticket or not is_free():
                    self._check_goes_on()
                    left = deadline - time.monotonic()
                    if left <= 0:
                        raise NoConnectionFree(
                            f"none of the {self.most} connections became free within {patience:g} s",
                            hint="allow more with --max-connections, or refresh less at the same time",
                        )
                    self._changed.wait(left)
                self._check_goes_on()
                yield
            finally:
                queue.remove(ticket)
                self._changed.notify_all()

    def _check_goes_on(self) -> None:
        if self.is_abandoned:
            raise Abandoned("pgtrickle is stopping", hint="nothing is lost; the next sidecar goes on")

    def _opened(self) -> _Opened:
        while True:
            with self._changed:
                opened = self._idle.pop() if self._idle else None
                age = self._age
            if opened is None:
                break
            if is_alive(opened.connection):
                return opened
            close_quietly(opened.connection)
        connection = connect(self.dsn, application_name="pgtrickle refresh", is_pooled=self._is_pooled)
        self._is_pooled = connection.is_pooled
        if connection.replication_role != "origin":
            connection.close()
            raise UnsuitableSetting(
                f"session_replication_role is {connection.replication_role}: triggers that pass changes on"
                " would not fire",
                hint="alter role ... reset session_replication_role, for the role of the sidecar",
            )
        if self._temp_file_limit is not None:
            # what is set behind a pooler would be set for others too
            self.temp_files = (
                TempFiles.UNLIMITED
                if self._is_pooled
                else limit_temp_files(connection, self._temp_file_limit)
            )
        return _Opened(connection, age)

    def _give_back(self, count: int, taken: list[_Opened]) -> None:
        clean = [opened for opened in taken if roll_back(opened.connection)]
        with self._changed:
            for opened in taken:
                if opened in self._in_use:
                    self._in_use.remove(opened)
                is_cancelled = id(opened.connection) in self._cancelled
                self._cancelled.discard(id(opened.connection))
                if opened in clean and opened.age == self._age and not is_cancelled:
                    self._idle.append(opened)
                else:
                    close_quietly(opened.connection)
            self._held -= count
            self._changed.notify_all()

    def _close_idle(self, count: int) -> None:
        for _ in range(min(count, len(self._idle))):
            close_quietly(self._idle.pop(0).connection)
