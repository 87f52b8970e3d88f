"""The transaction of a refresh: where it reads, where it writes, and how a part of it is undone.

A session has one of two forms, and everything in which they differ is here. One stream table alone writes
on one connection and reads on another, in a snapshot that Spark's tasks can share; if it fails, all of it
is rolled back. Stream tables that must agree are refreshed together on one connection that reads its own
writes: a table sees the tables it reads as they will be once all commit. Each has a savepoint of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, LiteralString

from pgtrickle.changes.memory import TooMuch
from pgtrickle.changes.source_window import Decoded
from pgtrickle.model.errors import RefreshFailed
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import RelationId
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
from pgtrickle.refresh.phases import PhaseClock

LOCK_TIMEOUT = "5s"
PLANNED_AS_A_WHOLE: Final = {"from_collapse_limit": "12", "join_collapse_limit": "12"}
"""Our compiler nests subqueries, which PostgreSQL would otherwise join in the order in which they stand."""
_SAVEPOINT: Final = "savepoint reads"
_SET_LOCALLY: Final = sql.SQL("set local lock_timeout = {}; set local search_path = {}").format(
    sql.Literal(LOCK_TIMEOUT), sql.SQL(SAFE_PATH)
)

__all__ = ["LOCK_TIMEOUT", "Session", "Settings", "evaluating_query", "open_shareable", "open_together"]


@dataclass(slots=True)
class Session:
    """`read` sees the sources at `frontier`; it is `write` itself if tables are refreshed together.

    `newest` sees what others have committed since the snapshot. `phases` measures what the refresh does.
    """

    write: Connection
    read: Connection
    newest: Connection
    frontier: Frontier
    taken_at: datetime
    from_wal: frozenset[RelationId] = frozenset()
    """The sources that are captured from the log, as of the snapshot."""
    decoded: Decoded = field(default_factory=dict)
    phases: PhaseClock = field(default_factory=PhaseClock)
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
        """Whether the server, or the pooler, has closed a connection."""
        return any(connection.closed or connection.broken for connection in self.connections)

    @property
    def can_share(self) -> bool:
        """Whether other connections can read what this one reads."""
        return self.read is not self.write

    @contextmanager
    def bounded_reads(self) -> Iterator[None]:
        """Reads that may be broken off because they are too many: the snapshot survives that."""
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

    def export_snapshot(self) -> str:
        """Export the snapshot; returns the name by which other connections import it."""
        # PostgreSQL exports no snapshot from inside a savepoint
        self._leave_savepoint()
        row = self.read.execute("select pg_export_snapshot()").fetchone()
        assert row is not None
        return str(row[0])

    def _leave_savepoint(self) -> None:
        if self._is_bounded:
            self.read.execute(f"release {_SAVEPOINT}")
            self._is_bounded = False

    def upstream_frontier(self) -> Frontier:
        """The frontier of the stream tables among the sources, including what this session wrote to them."""
        if self.can_share:
            return self.frontier
        if self._upstream is None:
            row = self.write.execute("select pg_current_xact_id()::text::bigint").fetchone()
            assert row is not None
            self._upstream = self.frontier.with_own(int(row[0]))
        return self._upstream

    def enter(self, settings: Settings) -> None:
        """Evaluate expressions from now on under the settings of the session that created a stream table.

        The search_path is an exception. The stored query qualifies every name, and nobody else may choose
        what an unqualified name inside its functions means.
        """
        if settings == self._entered:
            return
        for connection in self.connections:
            evaluate_as_author(connection, settings)
        self._entered, self._is_legible = settings, is_legible(evaluation(settings))

    def leave(self) -> None:
        """Return to settings under which we can read answers; sends nothing if they are in force."""
        if self._is_legible:
            return
        for connection in self.connections:
            set_locally(connection, {name: TRANSPORT[name] for name in MEANING if name in TRANSPORT})
        self._entered, self._is_legible = None, True

    def commit(self) -> None:
        """Commit the refresh, and end the snapshot."""
        self.write.commit()
        if self.can_share:
            # nothing was written here; a rollback would discard prepared statements
            self.read.commit()

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undo what is done inside if it raises. A table alone needs none: its transaction is rolled back."""
        if self.can_share:
            yield
            return
        try:
            with self.write.transaction():
                yield
        except BaseException:
            # the settings were rolled back too, perhaps to those of another table
            self._entered, self._is_legible = None, False
            raise


def evaluate_as_author(connection: Connection, settings: Settings) -> None:
    """Set the settings of the session that created a stream table, for this transaction."""
    try:
        set_locally(connection, evaluation(settings))
    except DatabaseError as error:
        message = (error.diag.message_primary or str(error)).strip()
        raise RefreshFailed(
            f"a setting under which the stream table was created cannot be applied: {message}",
            hint="alter its query in a session with settings that can be applied; those are recorded then",
        ) from error


@contextmanager
def evaluating_query(connection: Connection, settings: Settings) -> Iterator[None]:
    """Set them for a whole query. Its answer is not sent to us, so `array_nulls` is the author's too."""
    evaluate_as_author(connection, settings)
    is_other = (ARRAY_NULLS, "off") in settings
    if is_other:
        set_locally(connection, {ARRAY_NULLS: "off"})
    yield
    if is_other:
        set_locally(connection, {ARRAY_NULLS: TRANSPORT[ARRAY_NULLS]})


def open_shareable(write: Connection, read: Connection, relations: Sequence[RelationName]) -> Session:
    """Write on one connection; read on the other, in a snapshot that is taken now."""
    return Session(write, read, write, *_take_snapshot(read, relations, "repeatable read read only"))


def open_together(connection: Connection, newest: Connection, relations: Sequence[RelationName]) -> Session:
    """Read and write on one connection, in a snapshot that is taken now; `newest` is another connection."""
    newest.execute("set transaction isolation level read committed read only")
    return Session(connection, connection, newest, *_take_snapshot(connection, relations, "repeatable read"))


def _take_snapshot(
    connection: Connection, relations: Sequence[RelationName], isolation: LiteralString
) -> tuple[Frontier, datetime, frozenset[RelationId]]:
    """Lock the relations, then take the snapshot; its clock is that of the transaction.

    The locks come first because TRUNCATE and rewriting ALTERs do not keep old rows for old snapshots.
    """
    # a query would take the snapshot before the locks, so these are plain SET commands
    begins = sql.SQL("set transaction isolation level {}; {}").format(sql.SQL(isolation), _SET_LOCALLY)
    connection.execute(begins)
    if relations:
        lock_tables(connection, relations, ACCESS_SHARE)
    row = connection.execute(
        "select pg_current_snapshot()::text, now(), array(select s.source_relid::bigint"
        " from pgtrickle.pgt_sources s where s.capture = 'wal')"
    ).fetchone()
    assert row is not None
    return Frontier.parse(row[0]), row[1], frozenset(map(RelationId, row[2]))
