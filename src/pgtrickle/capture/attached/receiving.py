"""Brings our copies of the tables of another database to one of its snapshots."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Final

from pgtrickle.capture.attached.origin import SAME_TEXTS, Misfit, Origin
from pgtrickle.capture.attached.stand_ins import LOCK_TIMEOUT, note_error
from pgtrickle.capture.attached.tables import attached_tables
from pgtrickle.capture.attached.ticks import Counters, SharedOrigin
from pgtrickle.model.attached import AttachedDatabase, AttachedTable
from pgtrickle.model.errors import Busy, Diverged
from pgtrickle.model.frontier import Frontier
from pgtrickle.postgres.connection import Connection, DatabaseError, sql
from pgtrickle.postgres.locking import is_contention

OF_THE_TABLE: Final = ("22", "42")
"""Classes of SQLSTATEs that are about the values or the definition of one table: the others go on."""
Share = Callable[[Sequence[AttachedTable]], SharedOrigin]
"""Gives the windows that the broker has read."""


@dataclass(frozen=True, slots=True)
class Followed:
    """What following an attached database did: how many change rows came, and how many windows were read.

    `has_more` if it ended before the end of the log.
    """

    changes: int = 0
    windows: int = 0
    snapshot: Frontier | None = None
    has_more: bool = False


@contextmanager
def _savepoint(origin: Origin | SharedOrigin) -> Iterator[None]:
    """Keep the snapshot of the other database usable if reading a table there breaks off."""
    with origin.remote.transaction() if isinstance(origin, Origin) else nullcontext():
        yield


@dataclass(slots=True)
class Receiving:
    """One attached database, from which changes are received.

    `compares` reads all rows of the tables too, and raises `Diverged` if a copy did not equal them. `share`
    is None without a broker.
    """

    database: AttachedDatabase
    local: Connection
    remote: Connection
    compares: bool = False
    share: Share | None = None
    counters: Counters = field(default_factory=Counters)

    def receive(self, leaves: Collection[int]) -> Followed:
        """Read the windows in one snapshot of the other database, and apply them here."""
        self.local.execute(f"set transaction isolation level read committed; {SAME_TEXTS}")
        self.local.execute(sql.SQL("set local lock_timeout = {}").format(sql.Literal(LOCK_TIMEOUT)))
        try:
            tables = [
                table
                for table in attached_tables(self.local, self.database.alias, locks=True)
                if table.is_read
                and table.last_error is None
                and table.definition is not None
                and table.id not in leaves
            ]
        except DatabaseError as error:
            if is_contention(error):
                raise Busy("another session follows the same database", hint="try again") from error
            raise
        if not tables:
            self.local.rollback()
            return Followed()
        origin: Origin | SharedOrigin
        if self.share is not None and not self.compares:
            origin = self.share(tables)
        else:
            origin = Origin.open(self.remote, self.database, tables)
        done, windows = 0, 0
        received, differing = list[AttachedTable](), list[str]()
        for table in tables:
            try:
                with self.local.transaction(), _savepoint(origin):
                    came, read = self._receive_table(origin, table)
                    if self.compares and read and self._read_all(origin, table):
                        differing.append(f"{self.database.alias}.{table.schema}.{table.name}")
                        reload_readers(self.local, table)
            except DatabaseError as error:
                if (error.sqlstate or "")[:2] not in OF_THE_TABLE:
                    raise
                note_error(self.local, table, (error.diag.message_primary or str(error)).strip())
            else:
                received.append(table)
                done, windows = done + came, windows + read
        self._note(origin, received)
        self.local.commit()
        self._confirm(origin, received)
        if differing:
            raise Diverged(
                f"the copy of {', '.join(differing)} did not equal the table in the other database",
                hint="it was corrected; verify again",
            )
        return Followed(done, windows, origin.snapshot)

    def _receive_table(self, origin: Origin | SharedOrigin, table: AttachedTable) -> tuple[int, int]:
        """Bring one copy to the snapshot; returns the change rows, and whether a window was read."""
        if origin.definition(table) != table.definition:
            raise Misfit
        row = self.local.execute("select pgtrickle_internal.fit_attached(%s)", (table.relation,)).fetchone()
        is_fit = row == (False,) and set(table.wanted) <= set(table.followed)
        if is_fit and origin.keeps_since(table):
            window = self._receive_window(origin, table)
            if window is not None:
                return window, 1
        return self._read_all(origin, table), 0

    def _receive_window(self, origin: Origin | SharedOrigin, table: AttachedTable) -> int | None:
        """Apply the window of a table; None if all rows have to be read."""
        assert table.relation is not None
        assert table.frontier is not None
        incoming = sql.Identifier("pg_temp", f"incoming_{table.relation}")
        names = origin.captured(table)
        self.local.execute(
            "select pgtrickle_internal.create_incoming(%s, %s::name[])", (table.relation, list(names))
        )
        size = origin.copy_window(table, names, self.local, incoming)
        if isinstance(origin, Origin):
            self.counters.direct += 1
            self.counters.bytes_read += size
        row = self.local.execute(
            sql.SQL(
                "select count(*) filter (where weight = 0), count(*) from {}"
                " where not pg_visible_in_snapshot(xid, {}::pg_snapshot)"
            ).format(incoming, sql.Literal(str(table.frontier)))
        ).fetchone()
        assert row is not None
        if row[0]:
            return None
        if not row[1]:
            return 0
        self.local.execute(sql.SQL("analyze {}").format(incoming))
        try:
            with self.local.transaction():
                found = self.local.execute(
                    "select pgtrickle_internal.receive_changes(%s, %s::name[], %s::name[], %s::pg_snapshot)",
                    (table.relation, list(names), list(table.key()), str(table.frontier)),
                ).fetchone()
        except DatabaseError as error:
            if error.sqlstate == Diverged.sqlstate:
                reload_readers(self.local, table)
                return None
            raise
        assert found is not None
        return int(found[0])

    def _read_all(self, origin: Origin | SharedOrigin, table: AttachedTable) -> int:
        return receive_all(self.local, table, lambda rows: origin.copy_rows(table, self.local, rows))

    def _note(self, origin: Origin | SharedOrigin, tables: Sequence[AttachedTable]) -> None:
        self.local.execute(
            "update pgtrickle.pgt_attached_tables t set frontier = %s::pg_snapshot,"
            " followed_at = %s, followed_columns = w.columns"
            " from jsonb_to_recordset(%s::jsonb) w(id bigint, columns name[]) where t.table_id = w.id",
            (
                str(origin.snapshot),
                origin.taken_at,
                json.dumps([{"id": table.id, "columns": list(table.wanted)} for table in tables]),
            ),
        )
        self.local.execute(
            "update pgtrickle.pgt_attached_databases set place = %s, last_error = null, failing_since = null"
            " where alias = %s and (place, last_error) is distinct from (%s, null)",
            (origin.place, self.database.alias, origin.place),
        )

    def _confirm(self, origin: Origin | SharedOrigin, tables: Sequence[AttachedTable]) -> None:
        """Tell the other database what it need not keep any more.

        This happens in the transaction that has read there: until it ends, nobody empties the buffers.
        """
        self.remote.execute(
            "select pgtrickle_internal.confirm_origins(%s, %s::oid[], %s::pg_snapshot)",
            (
                self.database.reader,
                [table.definition["relation"] for table in tables if table.definition is not None],
                str(origin.snapshot),
            ),
        )
        self.remote.commit()


def receive_all(local: Connection, table: AttachedTable, copy_into: Callable[[sql.Identifier], None]) -> int:
    """Read all rows of a table, and make the copy equal to them; returns how many were different."""
    assert table.relation is not None
    rows = f"rows_{table.relation}"
    local.execute(
        sql.SQL("create temporary table {} on commit drop as select * from {} with no data").format(
            sql.Identifier(rows), sql.Identifier("pgtrickle_state", f"copy_of_{table.relation}")
        )
    )
    copy_into(sql.Identifier("pg_temp", rows))
    local.execute(sql.SQL("analyze {}").format(sql.Identifier("pg_temp", rows)))
    found = local.execute(
        "select pgtrickle_internal.receive_all(%s), pgtrickle_internal.index_attached(%s, %s::jsonb)",
        (table.relation, table.relation, json.dumps((table.definition or {})["indexes"])),
    ).fetchone()
    assert found is not None
    return int(found[0])


def reload_readers(local: Connection, table: AttachedTable) -> None:
    """A copy had other rows than it should: nobody knows which of them its readers have seen."""
    local.execute(
        "update pgtrickle.pgt_stream_tables s set needs_reinit = true, reinit_reason = %s"
        " from pgtrickle.pgt_dependencies d where d.pgt_id = s.pgt_id and d.source_relid = %s",
        ("a copy of what it reads did not equal the table in the other database", table.relation),
    )
