"""Follows tables of other databases: brings our copies from one of their snapshots to a later one.

All tables of an attached database are followed together, in one snapshot of it, so that stream tables never
mix two states of it. The copies, their change buffers and the snapshot commit in one transaction here; only
then does the other database learn that it no longer has to keep these changes. A crash in between makes it
keep them for longer, and nothing is applied twice.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pgtrickle.capture.broker import Counters, SharedOrigin
from pgtrickle.capture.origin import SAME_TEXTS, Misfit, Origin, describe_origin, problem_with, shape_of
from pgtrickle.model.attached import AttachedDatabase, AttachedTable
from pgtrickle.model.errors import AttachedFailed, Busy, Diverged
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.stream_table import RelationId, StreamTableId
from pgtrickle.postgres.connection import Connection, DatabaseError, sql
from pgtrickle.postgres.locking import is_contention
from pgtrickle.postgres.rows import rows_as
from pgtrickle.postgres.statements import load

_PACKAGE: Final = "pgtrickle.capture"
LOCK_TIMEOUT: Final = "5s"


@dataclass(frozen=True, slots=True)
class Followed:
    """What following an attached database did: how many change rows came, and how many windows were read."""

    changes: int = 0
    windows: int = 0
    snapshot: Frontier | None = None


def attached_databases(connection: Connection) -> tuple[AttachedDatabase, ...]:
    """The attached databases, and those that are being detached."""
    result = connection.execute(
        "select alias, reference, reader::text, place, is_detached"
        " from pgtrickle.pgt_attached_databases order by alias"
    )
    return rows_as(AttachedDatabase, result)


def attached_tables(connection: Connection, alias: str, *, locks: bool = False) -> tuple[AttachedTable, ...]:
    """The declared tables of an attached database; with `locks`, nobody else follows them meanwhile."""
    if locks:
        connection.execute(
            "select from pgtrickle.pgt_attached_tables where alias = %s order by table_id for no key update",
            (alias,),
        )
    result = connection.execute(load(_PACKAGE, "sql/attached_tables.sql"), {"alias": alias})
    return rows_as(_attached_table, result)


def aliases_of(connection: Connection, relations: Iterable[RelationId]) -> tuple[str, ...]:
    """The attached databases that have these tables."""
    rows = connection.execute(
        "select distinct alias from pgtrickle.pgt_attached_tables"
        " where source_relid = any (%s::oid[]) order by 1",
        (list(relations),),
    )
    return tuple(alias for (alias,) in rows)


def read_aliases(connection: Connection, tables: Iterable[StreamTableId]) -> frozenset[str]:
    """The attached databases that stream tables read."""
    rows = connection.execute(
        "select distinct t.alias from pgtrickle.pgt_dependencies d join pgtrickle.pgt_attached_tables t"
        " on t.source_relid = d.source_relid where d.pgt_id = any (%s)",
        (list(tables),),
    )
    return frozenset(alias for (alias,) in rows)


def _attached_table(
    *,
    number: int,
    schema: str,
    name: str,
    relation: int | None,
    is_stand_in: bool,
    is_read: bool,
    wanted: list[str],
    definition: dict[str, Any] | None,
    followed: list[str],
    frontier: str | None,
    last_error: str | None,
) -> AttachedTable:
    return AttachedTable(
        number,
        schema,
        name,
        None if relation is None else RelationId(relation),
        is_stand_in,
        is_read,
        tuple(wanted),
        definition,
        tuple(followed),
        None if frontier is None else Frontier.parse(frontier),
        last_error,
    )


@dataclass(slots=True)
class Following:
    """One attached database, seen from one that reads it.

    `local` and `remote` are connections outside of a transaction; `label` is what the other database calls
    us. `compares` reads all rows of the tables too, and raises `Diverged` if a copy did not equal them.
    """

    database: AttachedDatabase
    local: Connection
    remote: Connection
    label: str
    compares: bool = False
    share: Callable[[Sequence[AttachedTable]], SharedOrigin] | None = None
    """Gives the windows that the broker has read, if there is one."""
    released: dict[int, float] = field(default_factory=dict)
    """When tables were found to differ from their origin, by `time.monotonic`."""
    counters: Counters = field(default_factory=Counters)

    def follow(self) -> Followed:
        """Bring the copies to the newest snapshot of the other database.

        A table that is too busy to get triggers does not hold up the others; it is told at the end.
        """
        self.declare()
        busy = self.register()
        done = self._receive(leaves=busy.keys())
        for reason in busy.values():
            raise reason
        return done

    def declare(self) -> None:
        """Create the stand-ins that are missing, and fit those whose origin was altered."""
        for table in attached_tables(self.local, self.database.alias):
            if table.last_error is None or table.is_read:
                self._fit(table)
        self.local.commit()
        self.remote.rollback()

    def _fit(self, table: AttachedTable) -> None:
        found = describe_origin(self.remote, table)
        problem = problem_with(found) or self._missing_type(found)
        if not table.is_stand_in and table.relation is not None:
            problem = problem or self._unlike(table.relation, found)
            if problem is not None:
                self._release(table.relation, problem)
                return
        if problem is not None:
            self._note_error(table, problem)
        elif table.relation is not None and shape_of(found) == shape_of(table.definition):
            if found != table.definition:
                self._compare_again(table, found)
            elif table.last_error is not None:
                self._note_error(table, None)
        else:
            try:
                with self.local.transaction():
                    self._adopt(table, found)
            except DatabaseError as error:
                if is_contention(error):
                    raise Busy("a stand-in is locked by another session", hint="try again") from error
                self._note_error(table, (error.diag.message_primary or str(error)).strip())

    def _adopt(self, table: AttachedTable, found: dict[str, Any] | None) -> None:
        self.local.execute(sql.SQL("set local lock_timeout = {}").format(sql.Literal(LOCK_TIMEOUT)))
        text = json.dumps(found)
        if table.is_stand_in:
            self.local.execute("select pgtrickle_internal.fit_stand_in(%s, %s::jsonb)", (table.id, text))
        else:
            self.local.execute(
                "update pgtrickle.pgt_attached_tables set definition = %s::jsonb, frontier = null,"
                " last_error = null where table_id = %s",
                (text, table.id),
            )
            # the copy holds the key of its origin, too
            self.local.execute(
                "select pgtrickle_internal.copy_source(s.source_relid, s.columns_captured)"
                " from pgtrickle.pgt_sources s where s.source_relid = %s",
                (table.relation,),
            )

    def _compare_again(self, table: AttachedTable, found: dict[str, Any] | None) -> None:
        """A table has the same columns and keys, but its rows may have changed without a trace."""
        self.local.execute(
            "update pgtrickle.pgt_attached_tables set definition = %s::jsonb, frontier = null,"
            " last_error = null where table_id = %s",
            (json.dumps(found), table.id),
        )

    def _missing_type(self, found: dict[str, Any] | None) -> str | None:
        row = self.local.execute(
            "select pgtrickle_internal.missing_type(%s::jsonb)", (json.dumps(found),)
        ).fetchone()
        return f"{row[0]}, which does not exist here" if row and row[0] else None

    def _unlike(self, relation: RelationId, found: dict[str, Any] | None) -> str | None:
        row = self.local.execute(
            "select pgtrickle_internal.unlike_origin(%s, %s::jsonb)", (relation, json.dumps(found))
        ).fetchone()
        return None if row is None else row[0]

    def _release(self, relation: RelationId, problem: str) -> None:
        """Read a table itself again, because its origin is not, or no longer, the same."""
        self.released[relation] = time.monotonic()
        self.local.execute(
            "select pgtrickle_internal.release_origin(%s, %s)",
            (relation, f"its origin in {self.database.reference} cannot be followed: {problem}"),
        )

    def _note_error(self, table: AttachedTable, message: str | None) -> None:
        # the copy is compared again when it can be followed again
        self.local.execute(
            "update pgtrickle.pgt_attached_tables set last_error = %s, frontier = null where table_id = %s"
            " and last_error is distinct from %s",
            (message, table.id, message),
        )

    def register(self) -> dict[int, Busy]:
        """Have the other database capture what stream tables read, and keep nothing that they do not.

        Returns the tables that are too busy now.
        """
        busy: dict[int, Busy] = {}
        tables = attached_tables(self.local, self.database.alias)
        self.local.commit()
        reading = [table for table in tables if table.is_read and table.last_error is None]
        rows = self.remote.execute(
            "select source_relid::bigint, columns, frontier::text from pgtrickle.pgt_remote_readers"
            " where reader = %s",
            (self.database.reader,),
        ).fetchall()
        known = {relation: set(columns) for relation, columns, _ in rows}
        for table in reading:
            assert table.definition is not None
            relation = table.definition["relation"]
            is_captured = relation in known and table.definition["gap"] is None
            if not is_captured or known[relation] != set(table.wanted):
                try:
                    self._register(table, relation)
                except Busy as reason:
                    busy[table.id] = reason
                except AttachedFailed as refusal:
                    self._note_error(table, refusal.message)
                    self.local.commit()
        kept = [table.definition["relation"] for table in reading if table.definition is not None]
        if set(known) - set(kept):
            self.remote.execute(
                "select pgtrickle_internal.leave_origins(%s, %s::oid[])", (self.database.reader, kept)
            )
        self.remote.commit()
        return busy

    def _register(self, table: AttachedTable, relation: int) -> None:
        try:
            with self.remote.transaction():
                row = self.remote.execute(
                    "select pgtrickle_internal.follow_origin(%s, %s, %s, %s::name[])",
                    (self.database.reader, self.label, relation, list(table.wanted)),
                ).fetchone()
        except DatabaseError as error:
            if is_contention(error):
                raise _busy(table, "another session") from error
            message = (error.diag.message_primary or str(error)).strip()
            raise AttachedFailed(
                f"its changes cannot be captured there: {message}; the role of the sidecar needs SELECT and"
                " TRIGGER on the table and its partitions",
            ) from error
        if row is not None and row[0] is not None:
            self.remote.rollback()
            raise _busy(table, row[0])
        self.local.execute(
            "update pgtrickle.pgt_attached_tables set frontier = null where table_id = %s", (table.id,)
        )
        self.local.commit()

    def _receive(self, leaves: Collection[int]) -> Followed:
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
        done, windows, differing = 0, 0, list[str]()
        for table in tables:
            came, read = self._receive_table(origin, table)
            done, windows = done + came, windows + read
            if self.compares and read and self._receive_all(origin, table):
                differing.append(f"{self.database.alias}.{table.schema}.{table.name}")
                self._reload_readers(table)
        self._note(origin, tables)
        self.local.commit()
        self._confirm(origin, tables)
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
        return self._receive_all(origin, table), 0

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
                self._reload_readers(table)
                return None
            raise
        assert found is not None
        return int(found[0])

    def _reload_readers(self, table: AttachedTable) -> None:
        """A copy had other rows than it should: nobody knows which of them its readers have seen."""
        self.local.execute(
            "update pgtrickle.pgt_stream_tables s set needs_reinit = true, reinit_reason = %s"
            " from pgtrickle.pgt_dependencies d where d.pgt_id = s.pgt_id and d.source_relid = %s",
            ("a copy of what it reads did not equal the table in the other database", table.relation),
        )

    def _receive_all(self, origin: Origin | SharedOrigin, table: AttachedTable) -> int:
        """Read all rows of a table, and make the copy equal to them."""
        assert table.relation is not None
        rows = f"rows_{table.relation}"
        self.local.execute(
            sql.SQL("create temporary table {} on commit drop as select * from {} with no data").format(
                sql.Identifier(rows), sql.Identifier("pgtrickle_state", f"copy_of_{table.relation}")
            )
        )
        origin.copy_rows(table, self.local, sql.Identifier("pg_temp", rows))
        self.local.execute(sql.SQL("analyze {}").format(sql.Identifier("pg_temp", rows)))
        found = self.local.execute(
            "select pgtrickle_internal.receive_all(%s), pgtrickle_internal.index_attached(%s, %s::jsonb)",
            (table.relation, table.relation, json.dumps((table.definition or {})["indexes"])),
        ).fetchone()
        assert found is not None
        return int(found[0])

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


def _busy(table: AttachedTable, blockers: str) -> Busy:
    return Busy(
        f"{table.schema}.{table.name} cannot get triggers now, because of {blockers}",
        hint="the sidecar keeps trying",
    )
