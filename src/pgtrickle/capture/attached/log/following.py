"""Brings our copies of the tables of another database to a later position of its log.

The position is that of a commit: a copy has every transaction that committed before it, and no other. All
tables of a database are at the same position. The copies, their change buffers and the position commit in one
transaction here, and only then is the slot advanced there. A crash in between makes the other server keep its
log for longer, and nothing is applied twice.

A table of which we have no copy, or a wrong one, is read in a snapshot whose position in the log is known.
All other tables are decoded up to the same position.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from pgtrickle.capture.attached.log.decoding import Decoding, FailedTable, LostTables
from pgtrickle.capture.attached.log.fitting import (
    compare_again,
    fit_tables,
    forget_unread,
    readable_tables,
)
from pgtrickle.capture.attached.log.server import (
    PUBLICATION,
    LogState,
    advance,
    check_server,
    describe_logged,
    drop_publication,
    drop_slot,
    flush,
    log_state,
    slot_of,
    take_snapshot,
)
from pgtrickle.capture.attached.origin import SAME_TEXTS, UNDEFINED_TABLE, Misfit, copy_rows
from pgtrickle.capture.attached.receiving import OF_THE_TABLE, Followed, receive_all, reload_readers
from pgtrickle.capture.attached.stand_ins import LOCK_TIMEOUT, note_error
from pgtrickle.capture.attached.tables import attached_tables
from pgtrickle.capture.wal.slot import START, Lsn, SlotLost
from pgtrickle.capture.wal.sql_reader import SqlReader
from pgtrickle.model.attached import AttachedDatabase, AttachedTable
from pgtrickle.model.errors import Busy, Diverged
from pgtrickle.model.names import RelationName
from pgtrickle.postgres.connection import Connection, DatabaseError, sql
from pgtrickle.postgres.locking import ACCESS_SHARE, is_contention, lock_tables

ROUND_MESSAGES: Final = 200_000
"""A round ends with the first transaction that reaches this many messages."""
UNLIMITED: Final = (1 << 31) - 1
QUIET_BYTES: Final = 1 << 20
"""A position is stored without a change if this much log was read. Storing it writes log, too."""
ADVANCE_BYTES: Final = 1 << 18
"""The slot is advanced by at least this much: the server writes its position to disk each time."""
ROUNDS: Final = 1000


@dataclass(slots=True)
class LogFollowing:
    """One attached database whose log is decoded. `local` and `remote` are outside of a transaction.

    `compares` reads all rows of the tables too, and raises `Diverged` if a copy did not equal them. With
    `is_newest`, everything is followed that has committed before; without it, a position at which nothing
    has changed is not always stored. Unless it `may_read`, tables without a copy are left for later. `waits`
    tells afterwards why tables could not be read, and `state` what the log was like.
    """

    database: AttachedDatabase
    dsn: str = field(repr=False)
    local: Connection
    remote: Connection
    compares: bool = False
    is_newest: bool = False
    may_read: bool = True
    released: dict[int, float] = field(default_factory=dict)
    waits: Busy | None = None
    state: LogState | None = None

    def follow(self) -> Followed:
        """Bring the copies to the end of the log."""
        check_server(self.remote)
        fit_tables(self.database, self.local, self.remote, self.released)
        tables = readable_tables(self.local, self.database)
        forget_unread(self.local, self.database)
        if not tables:
            drop_slot(self.remote, self.database)
            self._store(None)
            self.local.commit()
            return Followed()
        if self.is_newest:
            flush(self.remote)
        for _ in tables:
            state = self._state()
            if state.gap is not None:
                self._start_over(state)
            try:
                return self._follow_from(state)
            except FailedTable as failure:
                note_error(self.local, failure.table, failure.message)
                self.local.commit()
        return Followed()

    def _follow_from(self, state: LogState) -> Followed:
        needs_rows = not all(table.is_complete for table in readable_tables(self.local, self.database))
        if self.may_read and (state.gap is not None or self.compares or needs_rows):
            try:
                return self._read(state)
            except Busy as reason:
                # the other tables need not wait
                self.waits = reason
        return Followed() if state.gap is not None else self._decode_rounds()

    def leave(self) -> None:
        """Leave nothing behind in a database that was detached."""
        drop_slot(self.remote, self.database)
        drop_publication(self.remote)

    def _state(self) -> LogState:
        row = self.local.execute(
            "select position::text from pgtrickle.pgt_attached_databases where alias = %s",
            (self.database.alias,),
        ).fetchone()
        self.local.commit()
        stored = None if row is None or row[0] is None else Lsn.parse(row[0])
        self.state = log_state(self.remote, self.database, stored)
        self.remote.rollback()
        return self.state

    def _start_over(self, state: LogState) -> None:
        """Forget a slot that lacks changes: every table is compared with its copy."""
        compare_again(self.local, readable_tables(self.local, self.database))
        self._store(None)
        self.local.commit()
        if state.has_slot:
            drop_slot(self.remote, self.database)

    def _read(self, state: LogState) -> Followed:
        """Read all rows of the tables that need it in a snapshot, and decode the others up to it."""
        # TRUNCATE, and an ALTER that rewrites, do not keep old rows for old snapshots
        is_first = state.gap is not None
        tables = [
            table
            for table in readable_tables(self.local, self.database)
            if self.compares or not table.is_complete
        ]
        self.local.commit()
        self.remote.execute(f"set transaction isolation level repeatable read; {SAME_TEXTS}")
        try:
            if tables:
                self._lock_there(tables)
            end = take_snapshot(
                self.dsn, self.remote, self.database, is_standby=state.is_standby, is_first=is_first
            )
            return self._receive(end, state, frozenset(table.id for table in tables), is_first=is_first)
        finally:
            if not self.remote.closed:
                self.remote.rollback()

    def _lock_there(self, tables: Sequence[AttachedTable]) -> None:
        try:
            lock_tables(self.remote, [RelationName(t.schema, t.name) for t in tables], ACCESS_SHARE)
        except DatabaseError as error:
            if error.sqlstate == UNDEFINED_TABLE:
                raise Misfit from error
            if is_contention(error):
                raise Busy("a table there is locked", hint="try again in a moment") from error
            raise

    def _decode_rounds(self) -> Followed:
        """Decode up to the end of the log, in as many rounds as it takes."""
        total = 0
        for _ in range(ROUNDS):
            state = self._state()
            if state.gap is not None:
                raise Misfit
            self.remote.execute(SAME_TEXTS)
            done = self._receive(state.end, state)
            total += done.changes
            if not done.has_more:
                break
        return Followed(total)

    def _receive(
        self, end: Lsn, state: LogState, locked: frozenset[int] | None = None, *, is_first: bool = False
    ) -> Followed:
        """One transaction here: every table is at `end` afterwards, or none is.

        In a snapshot, the `locked` tables can be read. Without one, this is None.
        """
        try:
            return self._receive_all(end, state, locked, is_first)
        except FailedTable:
            self.local.rollback()
            self.remote.rollback()
            raise
        except LostTables as lost:
            self.local.rollback()
            self.remote.rollback()
            compare_again(self.local, lost.tables)
            if lost.reloads:
                for table in lost.tables:
                    reload_readers(self.local, table)
            self.local.commit()
            raise Misfit from None
        except SlotLost:
            self.local.rollback()
            self.remote.rollback()
            self._start_over(state)
            raise Misfit from None

    def _receive_all(
        self, end: Lsn, state: LogState, locked: frozenset[int] | None, is_first: bool
    ) -> Followed:
        reads = locked is not None
        tables, stored = self._lock_here(is_first)
        # an ALTER that committed before the end is visible to this statement, or in the snapshot
        definitions = describe_logged(self.remote, tables).definitions
        if any(definitions.get(table.id) != table.definition for table in tables):
            raise Misfit
        whole = [table for table in tables if not table.is_complete] if reads else []
        decoded = [table for table in tables if table.is_complete]
        read = [*whole, *(decoded if self.compares else ())]
        if locked is not None and not {table.id for table in read} <= locked:
            raise Misfit
        if stored is not None and end < stored:
            raise Busy(f"another session follows {self.database.alias}", hint="try again in a moment")
        reader = SqlReader(self.remote, slot_of(self.database), PUBLICATION, stored or START)
        most = UNLIMITED if reads else ROUND_MESSAGES
        done = Decoding(reader, self.local, decoded).decode(stored, end, most)
        differing = list[str]()
        changes = done.changes
        for table in read:
            came = self._read_table(table)
            changes += came
            if came and table not in whole:
                differing.append(f"{self.database.alias}.{table.schema}.{table.name}")
                reload_readers(self.local, table)
        is_quiet = not reads and not changes and not self.is_newest and not done.has_more
        if is_quiet and stored is not None and end - stored < QUIET_BYTES:
            self.local.rollback()
            self.remote.rollback()
            return Followed()
        received = [*whole, *decoded]
        present = {table.id: table for table in attached_tables(self.local, self.database.alias, locks=True)}
        if any(present.get(table.id) != table for table in received):
            # somebody found out meanwhile that it has to be compared, or reads more of it
            raise Misfit
        self._note(received, done.position, state)
        self._store(done.position, state)
        self.local.commit()
        self.remote.rollback()
        if reads or done.has_more or done.position - (state.confirmed or done.position) >= ADVANCE_BYTES:
            advance(self.remote, self.database, done.position)
        if differing:
            raise Diverged(
                f"the copy of {', '.join(differing)} did not equal the table in the other database",
                hint="it was corrected; verify again",
            )
        return Followed(changes, has_more=done.has_more)

    def _lock_here(self, is_first: bool) -> tuple[list[AttachedTable], Lsn | None]:
        self.local.execute(f"set transaction isolation level read committed; {SAME_TEXTS}")
        self.local.execute(sql.SQL("set local lock_timeout = {}").format(sql.Literal(LOCK_TIMEOUT)))
        try:
            # not a lock of rows, which writes to our own log: this may be the same server
            self.local.execute("select pgtrickle_internal.lock_attached(%s)", (self.database.alias,))
        except DatabaseError as error:
            if is_contention(error):
                raise Busy("another session follows the same database", hint="try again") from error
            raise
        row = self.local.execute(
            "select position::text from pgtrickle.pgt_attached_databases where alias = %s",
            (self.database.alias,),
        ).fetchone()
        stored = None if row is None or row[0] is None else Lsn.parse(row[0])
        if (stored is None) != is_first:
            raise Busy(f"another session follows {self.database.alias}", hint="try again in a moment")
        return readable_tables(self.local, self.database), stored

    def _read_table(self, table: AttachedTable) -> int:
        """Make the copy of a table equal to its rows in the snapshot; returns how many were different."""
        try:
            with self.local.transaction(), self.remote.transaction():
                return receive_all(
                    self.local, table, lambda rows: copy_rows(self.remote, table, self.local, rows)
                )
        except DatabaseError as error:
            if (error.sqlstate or "")[:2] not in OF_THE_TABLE:
                raise
            raise FailedTable(table, error) from error

    def _note(self, tables: Sequence[AttachedTable], position: Lsn, state: LogState) -> None:
        self.local.execute(
            "update pgtrickle.pgt_attached_tables t set position = %s::pg_lsn, followed_at = %s,"
            " followed_columns = w.columns"
            " from jsonb_to_recordset(%s::jsonb) w(id bigint, columns name[]) where t.table_id = w.id",
            (
                str(position),
                state.at,
                json.dumps([{"id": table.id, "columns": list(table.wanted)} for table in tables]),
            ),
        )

    def _store(self, position: Lsn | None, state: LogState | None = None) -> None:
        self.local.execute(
            "update pgtrickle.pgt_attached_databases set position = %(position)s::pg_lsn,"
            " place = coalesce(%(place)s, place), last_error = null, failing_since = null"
            " where alias = %(alias)s and (%(place)s::text is not null or position is not null)",
            {
                "position": None if position is None else str(position),
                "place": None if state is None else state.place,
                "alias": self.database.alias,
            },
        )
