"""A bounded number of connections to one database, shared by the threads of a process and its Spark tasks.

A caller that needs several connections takes them all at once, in the order of the requests, so that no
caller holds one and waits for another. A refresh whose Spark tasks connect already holds two, so a few slots
are reserved for such tasks: one such refresh can always proceed, and then the next.
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
"""One for the scheduler, plus one refresh and its tasks."""
PATIENCE_SECONDS: Final = 300.0
CANCEL_SECONDS: Final = 2.0
TASKS_PATIENCE_SECONDS: Final = 1800.0
"""Long, because another large refresh may be running."""


def check_connection_limit(most: int) -> None:
    """Raise unless this many connections are enough for a refresh to finish."""
    if most < LEAST:
        raise TooFewConnections(
            f"{most} connections are too few: one polls, a refresh needs {FOR_REFRESH},"
            f" and its tasks {FOR_TASKS} more",
            hint=f"allow at least {LEAST} connections",
        )


class PoolUsage(NamedTuple):
    """How many connections are in use, idle, and lent to Spark's tasks, and the most there may be."""

    in_use: int
    idle: int
    lent: int
    most: int


class _PooledConnection(NamedTuple):
    """A connection and its generation. Connections from before the last renewal are not reused."""

    connection: Connection
    generation: int
    thread: int = 0
    """The thread that uses it."""


class Pool:
    """At most `most` connections. Thread-safe."""

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
        check_connection_limit(most)
        self.dsn, self.most = dsn, most
        self._patience, self._tasks_patience = patience, tasks_patience
        self._is_pooled = {Pooling.AUTO: None, Pooling.YES: True, Pooling.NO: False}[pooling]
        self._temp_file_limit = temp_file_limit
        self.temp_files: TempFiles | None = None
        """What limits the temporary files of our connections; None until the first one or without limit."""
        self._changed = threading.Condition()
        self._idle: list[_PooledConnection] = []
        self._in_use: list[_PooledConnection] = []
        self._cancelled: set[int] = set()
        self._abandoned = threading.Event()
        self._held = self._lent = self._generation = 0
        self._taking: deque[object] = deque()
        self._lending: deque[object] = deque()

    @property
    def is_pooled(self) -> bool:
        """Whether there is a pooler between us and the server; the first connection detects it."""
        if self._is_pooled is None:
            with self.connection():
                pass
        return bool(self._is_pooled)

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Take a connection in a new transaction; roll back what is uncommitted afterwards."""
        with self.connections(1) as (connection,):
            yield connection

    @contextmanager
    def autocommitting(self) -> Iterator[Connection]:
        """Take a connection in autocommit mode."""
        with self.connection() as connection:
            connection.autocommit = True
            try:
                yield connection
            finally:
                if roll_back(connection):
                    connection.autocommit = False

    @contextmanager
    def connections(self, count: int) -> Iterator[tuple[Connection, ...]]:
        """Take several connections at once. A caller must not ask for more while it holds any."""
        self._take(count)
        taken: list[_PooledConnection] = []
        try:
            for _ in range(count):
                taken.append(self._open()._replace(thread=threading.get_ident()))
            with self._changed:
                self._in_use += taken
            yield tuple(pooled.connection for pooled in taken)
        finally:
            self._give_back(count, taken)

    @contextmanager
    def reserve_for_tasks(self, wanted: int) -> Iterator[int]:
        """Reserve connections that Spark tasks open themselves, at least `FOR_TASKS`; yield how many.

        The caller may hold connections. Beyond the minimum, enough stay free for one more refresh.
        """
        count = self._lend(wanted)
        try:
            yield count
        finally:
            with self._changed:
                self._lent -= count
                self._changed.notify_all()

    def usage(self) -> PoolUsage:
        """How many connections there are now."""
        with self._changed:
            return PoolUsage(self._held, len(self._idle), self._lent, self.most)

    @property
    def is_abandoned(self) -> bool:
        """Whether the pool has been abandoned."""
        return self._abandoned.is_set()

    def abandon(self) -> None:
        """Cancel the statements on all connections and hand out no more connections."""
        self._abandoned.set()
        with self._changed:
            running = [pooled.connection for pooled in self._in_use]
            self._changed.notify_all()
        for connection in running:
            with suppress(DatabaseError):
                connection.cancel_safe(timeout=CANCEL_SECONDS)

    def cancel(self, thread: int) -> None:
        """Cancel the statements on the connections of a thread.

        These connections are closed when they are returned, because a late cancel request must not reach a
        statement of another caller.
        """
        with self._changed:
            running = [pooled for pooled in self._in_use if pooled.thread == thread]
            self._cancelled |= {id(pooled.connection) for pooled in running}
        for pooled in running:
            with suppress(DatabaseError):
                pooled.connection.cancel_safe(timeout=CANCEL_SECONDS)

    def renew(self) -> None:
        """Close every connection; those in use when they are returned."""
        with self._changed:
            self._generation += 1
            self._close_idle(len(self._idle))

    def close(self) -> None:
        """Close the pool; connections in use close when they are returned."""
        self.renew()

    def _take(self, count: int) -> None:
        def is_free() -> bool:
            return self._held + count + max(self._lent, FOR_TASKS) <= self.most

        with self._wait_in_queue(self._taking, is_free, self._patience):
            self._held += count

    def _lend(self, wanted: int) -> int:
        def free() -> int:
            return self.most - self._held - self._lent

        with self._wait_in_queue(self._lending, lambda: free() >= FOR_TASKS, self._tasks_patience):
            count = max(FOR_TASKS, min(wanted, free() - FOR_REFRESH))
            self._lent += count
            # idle connections count too
            self._close_idle(self._held + len(self._idle) + self._lent - self.most)
            return count

    @contextmanager
    def _wait_in_queue(
        self, queue: deque[object], is_free: Callable[[], bool], patience: float
    ) -> Iterator[None]:
        """Wait until we are first in the queue and connections are free; then continue with the lock held."""
        ticket, deadline = object(), time.monotonic() + patience
        with self._changed:
            queue.append(ticket)
            try:
                while queue[0] is not ticket or not is_free():
                    self._check_not_abandoned()
                    left = deadline - time.monotonic()
                    if left <= 0:
                        raise NoConnectionFree(
                            f"none of the {self.most} connections became free within {patience:g} s",
                            hint="raise PGTRICKLE_MAX_CONNECTIONS, or lower PGTRICKLE_WORKER_POOL_SIZE",
                        )
                    self._changed.wait(left)
                self._check_not_abandoned()
                yield
            finally:
                queue.remove(ticket)
                self._changed.notify_all()

    def _check_not_abandoned(self) -> None:
        if self.is_abandoned:
            raise Abandoned("pgtrickle is stopping", hint="nothing is lost; the next sidecar continues")

    def _open(self) -> _PooledConnection:
        while True:
            with self._changed:
                pooled = self._idle.pop() if self._idle else None
                generation = self._generation
            if pooled is None:
                break
            if is_alive(pooled.connection):
                return pooled
            close_quietly(pooled.connection)
        connection = connect(self.dsn, application_name="pgtrickle refresh", is_pooled=self._is_pooled)
        self._is_pooled = connection.is_pooled
        if connection.replication_role != "origin":
            connection.close()
            raise UnsuitableSetting(
                f"session_replication_role is {connection.replication_role}: triggers that capture changes"
                " would not fire",
                hint="alter role ... reset session_replication_role, for the role of the sidecar",
            )
        if self._temp_file_limit is not None:
            # behind a pooler, the setting would apply to other clients too
            self.temp_files = (
                TempFiles.UNLIMITED
                if self._is_pooled
                else limit_temp_files(connection, self._temp_file_limit)
            )
        return _PooledConnection(connection, generation)

    def _give_back(self, count: int, taken: list[_PooledConnection]) -> None:
        clean = [pooled for pooled in taken if roll_back(pooled.connection)]
        with self._changed:
            for pooled in taken:
                if pooled in self._in_use:
                    self._in_use.remove(pooled)
                is_cancelled = id(pooled.connection) in self._cancelled
                self._cancelled.discard(id(pooled.connection))
                if pooled in clean and pooled.generation == self._generation and not is_cancelled:
                    self._idle.append(pooled)
                else:
                    close_quietly(pooled.connection)
            self._held -= count
            self._changed.notify_all()

    def _close_idle(self, count: int) -> None:
        for _ in range(min(count, len(self._idle))):
            close_quietly(self._idle.pop(0).connection)
