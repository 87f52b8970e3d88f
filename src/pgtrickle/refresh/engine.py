"""What refreshes share: the database, Spark, and the queries compiled so far."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum

from pgtrickle.changes.kept import KeptRows
from pgtrickle.model.errors import Abandoned
from pgtrickle.model.stream_table import StreamTable, StreamTableId
from pgtrickle.pipeline.session import Spark
from pgtrickle.postgres.connection import Connection, DatabaseError, connect
from pgtrickle.refresh.compiling import Compilation, compilation

LARGE_WINDOW = 200_000
"""From this many change rows on, one task is slower than spreading them."""
LARGE_TABLE = 200_000
"""From this many rows on, a first load is spread over tasks."""


CANCEL_SECONDS = 5.0
"""How long asking the server to end a statement may take."""


class Path(Enum):
    """How a program runs on Spark; AUTO chooses by the rows at hand."""

    AUTO = "auto"
    SMALL = "small"
    DISTRIBUTED = "distributed"


@dataclass(slots=True)
class Engine:
    """Collaborators of a refresh. `start_spark` is called at most once, when Spark is first needed."""

    dsn: str = field(repr=False)
    start_spark: Callable[[], Spark]
    path: Path = Path.AUTO
    large_window: int = LARGE_WINDOW
    large_table: int = LARGE_TABLE
    kept: KeptRows = field(default_factory=KeptRows)
    _spark: Spark | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _idle: list[Connection] = field(default_factory=list)
    _in_use: set[Connection] = field(default_factory=set)
    _has_given_up: threading.Event = field(default_factory=threading.Event)
    _compilations: dict[StreamTableId, Compilation] = field(default_factory=dict)

    @property
    def spark(self) -> Spark:
        """The Spark of this engine, started when it is first asked for."""
        with self._lock:
            if self._spark is None:
                self._spark = self.start_spark()
            return self._spark

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection in a fresh transaction; what was not committed is rolled back afterwards."""
        connection = self._taken()
        try:
            yield connection
        finally:
            self._given_back(connection)

    @property
    def is_abandoned(self) -> bool:
        """Whether what ran was given up: that it failed then tells nothing of a stream table."""
        return self._has_given_up.is_set()

    def abandon(self) -> None:
        """Give up what runs, in whatever thread: its statements end, its transactions keep nothing.

        What runs between two statements goes on until its next one, so ask again while anything does.
        """
        self._has_given_up.set()
        with self._lock:
            running, spark = list(self._in_use), self._spark
        for connection in running:
            with suppress(DatabaseError):
                connection.cancel_safe(timeout=CANCEL_SECONDS)
        if spark is not None:
            spark.interrupt()

    def compiled(self, connection: Connection, table: StreamTable) -> Compilation:
        """The table's query, compiled now or before."""
        known = self._compilations.get(table.id)
        if known is None or (known.query, known.mode) != (table.query, table.mode):
            known = compilation(connection, table)
            self._compilations[table.id] = known
        return known

    def known(self, table: StreamTableId) -> Compilation | None:
        """What was compiled for the table before, if anything was."""
        return self._compilations.get(table)

    def forget(self, *tables: StreamTableId) -> None:
        """Compile anew next time: what the queries read has changed."""
        for table in tables:
            self._compilations.pop(table, None)
            self.kept.forget(table)

    def close(self) -> None:
        """Stop Spark if it was started, and leave the database."""
        with self._lock:
            if self._spark is not None:
                self._spark.close()
                self._spark = None
            while self._idle:
                self._idle.pop().close()

    def _taken(self) -> Connection:
        if self.is_abandoned:
            raise Abandoned("pgtrickle is stopping", hint="nothing is lost; the next sidecar goes on")
        with self._lock:
            while self._idle:
                connection = self._idle.pop()
                if not connection.closed and not connection.broken:
                    self._in_use.add(connection)
                    return connection
        connection = connect(self.dsn, application_name="pgtrickle refresh")
        with self._lock:
            self._in_use.add(connection)
        return connection

    def _given_back(self, connection: Connection) -> None:
        with self._lock:
            self._in_use.discard(connection)
        if not connection.closed and not connection.broken:
            try:
                connection.rollback()
            except Exception:
                connection.close()
                raise
            with self._lock:
                self._idle.append(connection)
