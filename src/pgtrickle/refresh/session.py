"""The transaction of a refresh: what it claims, what it reads, and what it writes.

One stream table alone claims and writes in one transaction and reads in a snapshot that others
can share, so that Spark's tasks read the same rows. Stream tables that must agree are refreshed
together, in one transaction that reads its own writes: a table above sees the tables below as
they will be when all commit at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pgtrickle.changes.memory import TooMuch
from pgtrickle.model.errors import RefreshFailed
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.names import RelationName
from pgtrickle.postgres.connection import Connection, DatabaseError, set_locally, sql
from pgtrickle.postgres.locking import ACCESS_SHARE, lock_tables
from pgtrickle.postgres.settings import (
    ARRAY_NULLS,
    MEANING,
    SAFE_PATH,
    TRANSPORT,
    Settings,
    evaluation,
    is_legible,
)

LOCK_TIMEOUT = "5s"
_SAVEPOINT: Final = "savepoint reads"
_SET_LOCALLY: Final = sql.SQL("set local lock_timeout = {}; set local search_path = {}").format(
    sql.Literal(LOCK_TIMEOUT), sql.SQL(SAFE_PATH)
)

__all__ = ["LOCK_TIMEOUT", "Session", "Settings", "alone", "evaluating_query", "together"]


@dataclass(slots=True)
class Session:
    """`read` sees the sources at `frontier`; it is `write` itself where tables go together.

    `newest` sees what others have committed since.
    """

    write: Connection
    read: Connection
    newest: Connection
    frontier: Frontier
    taken_at: datetime
    _entered: Settings | None = None
    _is_legible: bool = True
    _upstream: Frontier | None = None
    _is_bounded: bool = False

    @property
    def connections(self) -> tuple[Connection, ...]:
        """Each connection of the session, once."""
        return (self.write, self.read) if self.can_share else (self.write,)

    @property
    def is_lost(self) -> bool:
        """Whether the server, or the pooler, has left us."""
        return any(connection.closed or connection.broken for connection in self.connections)

    @property
    def can_share(self) -> bool:
        """Whether other connections can read what this one reads."""
        return self.read is not self.write

    @contextmanager
    def bounded(self) -> Iterator[None]:
        """Reads that are given up where they are too many: the snapshot outlives them."""
        if not self.can_share:
            with self.savepoint():
                yield
            return
        self._leave_savepoint()
        self.read.execute(_SAVEPOINT)
        self._is_bounded = True
        try:
            yield
        except TooMuch:
            self.read.execute(f"rollback to {_SAVEPOINT}")
            raise

    def shared(self) -> str:
        """The name under which other connections enter this snapshot."""
        # PostgreSQL exports none from within a savepoint
        self._leave_savepoint()
        row = self.read.execute("select pg_export_snapshot()").fetchone()
        assert row is not None
        return str(row[0])

    def _leave_savepoint(self) -> None:
        if self._is_bounded:
            self.read.execute(f"release {_SAVEPOINT}")
            self._is_bounded = False

    def upstream_frontier(self) -> Frontier:
        """Up to where stream tables have been read: reading our own writes, those count as seen too."""
        if self.can_share:
            return self.frontier
        if self._upstream is None:
            row = self.write.execute("select pg_current_xact_id()::text::bigint").fetchone()
            assert row is not None
            self._upstream = self.frontier.with_own(int(row[0]))
        return self._upstream

    def enter(self, settings: Settings) -> None:
        """Evaluate from now on as the session that created a stream table would have.

        Except for its search_path: the stored query has every name in full, and what the functions in it
        name without a schema must not be for others to choose.
        """
        if settings == self._entered:
            return
        for connection in self.connections:
            evaluate_as_author(connection, settings)
        self._entered, self._is_legible = settings, is_legible(evaluation(settings))

    def leave(self) -> None:
        """Make the answers to our own statements legible again; asks nothing where they are."""
        if self._is_legible:
            return
        for connection in self.connections:
            set_locally(connection, {name: TRANSPORT[name] for name in MEANING if name in TRANSPORT})
        self._entered, self._is_legible = None, True

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """What is done inside is undone if it raises."""
        try:
            with self.write.transaction():
                yield
        except BaseException:
            # the settings went back as well, to those of another table perhaps
            self._entered, self._is_legible = None, False
            raise


def evaluate_as_author(connection: Connection, settings: Settings) -> None:
    """Let this transaction evaluate expressions as the session that created a stream table would have."""
    try:
        set_locally(connection, evaluation(settings))
    except DatabaseError as error:
        message = (error.diag.message_primary or str(error)).strip()
        raise RefreshFailed(
            f"a setting under which the stream table was created cannot be applied: {message}",
            hint="alter its query in a session with other settings: those are recorded then",
        ) from error


@contextmanager
def evaluating_query(connection: Connection, settings: Settings) -> Iterator[None]:
    """The same for a whole query, of which nothing is sent to us: `array_nulls` is the author's too."""
    evaluate_as_author(connection, settings)
    is_other = (ARRAY_NULLS, "off") in settings
    if is_other:
        set_locally(connection, {ARRAY_NULLS: "off"})
    yield
    if is_other:
        set_locally(connection, {ARRAY_NULLS: TRANSPORT[ARRAY_NULLS]})


def alone(write: Connection, read: Connection, relations: Sequence[RelationName]) -> Session:
    """Write here, and read there in a snapshot that begins now, after the claim."""
    read.execute("set transaction isolation level repeatable read read only")
    return Session(write, read, write, *_begun(read, relations))


def together(connection: Connection, newest: Connection, relations: Sequence[RelationName]) -> Session:
    """Read and write in one snapshot, which begins now; `newest` is another connection."""
    connection.execute("set transaction isolation level repeatable read")
    newest.execute("set transaction isolation level read committed read only")
    return Session(connection, connection, newest, *_begun(connection, relations))


def _begun(connection: Connection, relations: Sequence[RelationName]) -> tuple[Frontier, datetime]:
    """Take the snapshot.

    TRUNCATE and rewriting ALTERs do not keep old rows for old snapshots, so the sources are locked
    before the snapshot is taken. Its clock is the transaction's own, which SQL in it reads too.
    """
    # not by a query: that would take the snapshot before the locks
    connection.execute(_SET_LOCALLY)
    if relations:
        lock_tables(connection, relations, ACCESS_SHARE)
    row = connection.execute("select pg_current_snapshot()::text, now()").fetchone()
    assert row is not None
    return Frontier.parse(row[0]), row[1]
