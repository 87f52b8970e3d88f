"""WAL capture of one database, as the threads of a process share it."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from pgtrickle.capture.wal.late_rows import copy_to_window, late_sources
from pgtrickle.capture.wal.reader import LogReader, SlotTaken
from pgtrickle.capture.wal.slot import PUBLICATION, START, Lsn, SlotLost, free_slot
from pgtrickle.capture.wal.sql_reader import SqlReader
from pgtrickle.capture.wal.store import ROUND_MESSAGES, Round, decode_round, only
from pgtrickle.capture.wal.stream_reader import StreamReader
from pgtrickle.changes.source_window import Start
from pgtrickle.model.errors import Busy
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import RelationId
from pgtrickle.postgres.connection import Connection, DatabaseError, connect
from pgtrickle.postgres.liveness import close_quietly
from pgtrickle.postgres.locking import is_contention
from pgtrickle.postgres.replication import Refused, StreamEnded

WAIT_SECONDS: Final = 60.0
"""How long a thread waits for another one that decodes."""
ADVANCE_SECONDS: Final = 1.0
"""How often the slot is advanced at most: the server writes its position to disk each time."""
STALLED_SECONDS: Final = 0.05
"""The log can end in the middle of a record. If nothing arrives for so long, another record completes it."""
FEW_ROWS: Final = 100
REST, LONG_REST, LONGEST_REST = 4, 20, 1.0
"""How many times as long as a round the pause after it is: after few rows, and after more. Applications that
write much share the machine with the server, so decoding leaves them time. A refresh does not wait for it."""
OTHER_SECONDS: Final = 5.0
"""A session that holds the slot and stores nothing for so long after it was asked to is ended."""
LOOK_SECONDS: Final = 0.002
REMOVED: Final = frozenset({"42P01", "42703", "42883", "3F000"})
"""A table, column, function or schema does not exist: the capture of the sources is repaired."""
STREAM_AGAIN_SECONDS: Final = 300.0
"""How long the log is read by SQL after a replication connection was refused."""


@dataclass(slots=True)
class WalCapture:
    """Decodes the slot of a database. Connects when it is first used. Thread-safe."""

    dsn: str = field(repr=False)
    round_messages: int = ROUND_MESSAGES
    streams: bool = False
    """Whether to hold the slot through a replication connection: only for who decodes all the time."""
    refusal: str | None = None
    """Why the log is read by SQL instead."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _connection: Connection | None = None
    _reader: LogReader | None = None
    _position: Lsn = START
    _advanced_at: float = 0.0
    _refused_at: float = 0.0

    def catch_up(self) -> None:
        """Decode every transaction that has committed before this call, whatever has been flushed."""
        with self._using() as connection:
            inserted, flushed = only(
                connection, "select pg_current_wal_insert_lsn()::text, pg_current_wal_flush_lsn()::text"
            )
            target = Lsn.parse(inserted)
            if target <= self._position:
                return
            if Lsn.parse(flushed) < target:
                _write(connection, "")
            since = time.monotonic()
            while self._position < target:
                before = self._position
                try:
                    self._decode(connection)
                except SlotTaken:
                    self._position = max(self._position, _ask_other(connection, target))
                if self._position > before:
                    since = time.monotonic()
                elif time.monotonic() - since > STALLED_SECONDS:
                    _write(connection, "")
                    since = time.monotonic()

    def decode(self) -> Round:
        """Decode one round if the log has grown, and advance the slot now and then.

        Does nothing while another session reads the slot.
        """
        with self._using() as connection:
            try:
                found = self._decode(connection)
            except SlotTaken:
                return Round(self._position)
            if time.monotonic() - self._advanced_at >= ADVANCE_SECONDS:
                self._advance(connection)
                self._advanced_at = time.monotonic()
            return found

    def follow(self, seconds: float) -> tuple[frozenset[RelationId], float]:
        """Decode a round when there is something to decode, or wait for it for some seconds.

        Returns the sources that changed, and for how many seconds to rest.
        """
        if not self._wait(seconds):
            return frozenset(), 0.0
        began = time.monotonic()
        found = self.decode()
        took = time.monotonic() - began
        return found.sources, min(took * (LONG_REST if found.rows > FEW_ROWS else REST), LONGEST_REST)

    @property
    def is_streaming(self) -> bool:
        """Whether the log arrives through a replication connection."""
        return isinstance(self._reader, StreamReader)

    def check_published(self, sources: Collection[RelationId]) -> None:
        """Raise SlotLost if changes of a source may be missing in the log that was decoded."""
        with self._using() as connection:
            row = connection.execute(
                "select g.gap from unnest(%s::oid[]) s(source),"
                " pgtrickle_internal.publication_gap(s.source) g(gap) where g.gap is not null limit 1",
                (list(sources),),
            ).fetchone()
        if row is not None:
            raise SlotLost(row[0])

    def late(self, sources: Collection[RelationId], snapshot: Frontier) -> frozenset[RelationId]:
        """The sources that have rows which were stored after a snapshot was taken."""
        with self._using() as connection:
            return late_sources(connection, sources, snapshot)

    def window(self, starts: Sequence[Start], until: Frontier, number: int) -> RelationName:
        """Copy the windows of a source into one of its window tables, where every snapshot sees them."""
        with self._using() as connection:
            return copy_to_window(connection, starts, until, number)

    @contextmanager
    def using(self) -> Iterator[Connection]:
        """The connection in autocommit mode, for what must not overlap with decoding in this process."""
        with self._using() as connection:
            yield connection

    def forget(self) -> None:
        """Forget the position: it belonged to another slot or server."""
        with self._lock:
            self._release()
            self._position = START

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            self._disconnect()

    def _wait(self, seconds: float) -> bool:
        """Wait until the server has sent something to decode, on a stream; False if it has not."""
        with self._using():
            reader = self._reader
            if not isinstance(reader, StreamReader) or reader.has_work():
                return True
        # others may use the stream meanwhile, or close it
        reader.wait(seconds)
        with self._using():
            return self._reader is not reader or reader.has_work()

    def _disconnect(self) -> None:
        """Forget a connection whose state is unknown: another server may answer next time."""
        self._release()
        if self._connection is not None:
            close_quietly(self._connection)
        self._connection = None

    def _release(self) -> None:
        if self._reader is not None:
            self._reader.close()
        self._reader = None

    def _decode(self, connection: Connection) -> Round:
        reader = self._reading(connection)
        # what a stream has not stored yet is sent again only to another one
        known = START if isinstance(reader, StreamReader) else self._position
        found = decode_round(connection, reader, known, self.round_messages)
        self._position = max(self._position, found.position)
        if found.has_more:
            # a round counts what it skips, so the next one must not begin with it
            self._advance(connection)
        return found

    def _reading(self, connection: Connection) -> LogReader:
        """The reader; it is opened while nobody else decodes."""
        if self._reader is None:
            with connection.transaction():
                connection.execute("select pg_advisory_xact_lock(pgtrickle_internal.wal_lock(), 0)")
                slot, encoding, gap, stored = only(
                    connection,
                    "select pgtrickle_internal.wal_slot()::text, pgtrickle_internal.log_encoding()::text,"
                    " pgtrickle_internal.slot_gap(), (select decoded_lsn::text from pgtrickle.pgt_wal)",
                )
                if gap is not None:
                    raise SlotLost(gap)
                reader = self._stream(slot, Lsn.parse(stored), encoding)
                self._reader = reader or SqlReader(connection, slot, PUBLICATION)
                if self.streams:
                    _note_reader(connection, "sql" if reader is None else "stream", self.refusal)
        return self._reader

    def _stream(self, slot: str, stored: Lsn, encoding: str) -> StreamReader | None:
        is_early = self.refusal and time.monotonic() - self._refused_at < STREAM_AGAIN_SECONDS
        if not self.streams or is_early:
            return None
        try:
            reader = StreamReader.open(self.dsn, slot, PUBLICATION, stored, encoding)
        except Refused as refused:
            self.refusal, self._refused_at = str(refused), time.monotonic()
            return None
        self.refusal = None
        return reader

    def _advance(self, connection: Connection) -> None:
        """Release the log before the stored position."""
        with connection.transaction():
            connection.execute("select pg_advisory_xact_lock(pgtrickle_internal.wal_lock(), 0)")
            row = connection.execute("select decoded_lsn::text from pgtrickle.pgt_wal").fetchone()
            if row is not None:
                self._reading(connection).confirm(Lsn.parse(row[0]))

    @contextmanager
    def _using(self) -> Iterator[Connection]:
        if not self._lock.acquire(timeout=WAIT_SECONDS):
            raise Busy("the log is being decoded", hint="try again in a moment")
        try:
            if self._connection is None or self._connection.closed:
                self._release()
                # another server may answer now
                self._position, self._refused_at = START, -STREAM_AGAIN_SECONDS
                self._connection = connect(self.dsn, autocommit=True, application_name="pgtrickle wal")
            yield self._connection
        except DatabaseError as error:
            is_lost = self._connection is None or self._connection.broken or self._connection.closed
            self._disconnect()
            if not is_lost and error.sqlstate in REMOVED:
                raise SlotLost("something that capture uses was removed") from error
            if is_lost or is_contention(error):
                # nobody's stream table is at fault: another session reads the slot, or ours was ended
                raise Busy("the log cannot be decoded now", hint="try again in a moment") from error
            raise
        except StreamEnded as ended:
            self._disconnect()
            raise Busy("the log cannot be read now", hint="try again in a moment") from ended
        except BaseException:
            self._disconnect()
            raise
        finally:
            self._lock.release()


def _write(connection: Connection, content: str) -> None:
    """Write a note to the log, and force it to disk: decoding reads no further than that."""
    with connection.transaction():
        connection.execute("set local synchronous_commit = local")
        connection.execute("select pg_logical_emit_message(true, 'pgtrickle', %s)", (content,))


def _note_reader(connection: Connection, reader: str, refusal: str | None) -> None:
    """Record how a sidecar reads the slot, for people."""
    connection.execute(
        "update pgtrickle.pgt_wal set reader = %(reader)s, reader_note = %(note)s"
        " where (reader, reader_note) is distinct from (%(reader)s::text, %(note)s::text)",
        {"reader": reader, "note": refusal},
    )


def _ask_other(connection: Connection, target: Lsn) -> Lsn:
    """Let the session that reads the slot store a position, and wait for it; the position that is stored.

    Returns earlier if the slot is free. A session that does not answer is ended.
    """
    _write(connection, "store")
    until = time.monotonic() + OTHER_SECONDS
    while True:
        row = connection.execute(
            "select w.decoded_lsn::text, s.active from pgtrickle.pgt_wal w"
            " left join pg_replication_slots s on s.slot_name = w.slot"
        ).fetchone()
        if row is None:
            raise SlotLost("WAL capture was given up")
        stored, is_active = row
        position = Lsn.parse(stored)
        if position >= target or not is_active:
            return position
        if time.monotonic() > until:
            free_slot(connection)
            return position
        time.sleep(LOOK_SECONDS)
