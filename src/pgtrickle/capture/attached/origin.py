"""An attached database in one of its snapshots: the windows and rows of the tables that we follow there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Self

from pgtrickle.catalog.identity import installation
from pgtrickle.catalog.install import check_installed, check_may_serve
from pgtrickle.changes.source_window import buffers, unseen_by
from pgtrickle.model.attached import ORIGIN_KINDS, AttachedDatabase, AttachedTable
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import RelationId
from pgtrickle.postgres.connection import Connection, DatabaseError, connect, sql
from pgtrickle.postgres.copy_across import copy_across
from pgtrickle.postgres.locking import ACCESS_SHARE, lock_tables

UNDEFINED_TABLE: Final = "42P01"
_NO_SHAPE: Final = frozenset({"version", "gap", "identity", "is_full", "obstacle", "remedy"})
"""What a definition says about the capture of a table."""
SAME_TEXTS: Final = "set local lc_monetary = 'C'"
"""Values travel as text, and the text of money depends on this setting. Our connections pin all others."""


class Misfit(Exception):
    """A table of another database is not what we know it to be: it was altered, or dropped."""


def connect_to_origin(dsn: str, application_name: str) -> Connection:
    """Connect to a database that is followed. Raises unless pgtrickle belongs to our role there.

    We call its functions, and their owner could replace them with anything.
    """
    connection = connect(dsn, application_name=application_name)
    try:
        check_may_serve(connection)
        check_installed(connection)
        connection.rollback()
    except BaseException:
        connection.close()
        raise
    return connection


def describe_origin(remote: Connection, table: AttachedTable) -> dict[str, Any] | None:
    """The definition of a table as its database has it now; None if there is no such table."""
    row = remote.execute(
        "select pgtrickle_internal.describe_origin(%s, %s)", (table.schema, table.name)
    ).fetchone()
    return row[0] if row is not None else None


def shape_of(definition: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """What a stand-in is made from: the definition without what only tells whether rows may have changed."""
    if definition is None:
        return None
    return {key: value for key, value in definition.items() if key not in _NO_SHAPE}


def problem_with(found: Mapping[str, Any] | None) -> str | None:
    """Why a relation of another database cannot be followed; None if it can."""
    if found is None:
        return "there is no such table"
    if found["kind"] not in ORIGIN_KINDS:
        return "it is not a table"
    if not found["may_read"]:
        return "the role of the sidecar may not read it there"
    if found["is_filtered"]:
        return "row-level security would hide rows from the role of the sidecar there"
    if found.get("obstacle") is not None:
        remedy = "" if found["remedy"] is None else f"; run there: {found['remedy']}"
        return f"its changes cannot be decoded: {found['obstacle']}{remedy}"
    return None


def is_kept(
    kept: Mapping[int, Frontier | None], database: AttachedDatabase, place: str, table: AttachedTable
) -> bool:
    """Whether all changes since the frontier of our copy are kept: it is the same server, and knows us."""
    assert table.definition is not None
    since = kept.get(table.definition["relation"])
    is_same_server = database.place in (None, place)
    return (
        since is not None and table.frontier is not None and is_same_server and table.frontier.covers(since)
    )


@dataclass(frozen=True, slots=True)
class Origin:
    """A transaction in an attached database, in the snapshot up to which its tables are followed now."""

    remote: Connection
    database: AttachedDatabase
    snapshot: Frontier
    taken_at: datetime
    place: str
    kept: Mapping[int, Frontier | None]
    """For each table that is captured for us: since when its changes are kept."""

    @classmethod
    def open(cls, remote: Connection, database: AttachedDatabase, tables: Sequence[AttachedTable]) -> Self:
        """Lock the tables and their buffers, and take a snapshot.

        TRUNCATE, and an ALTER that rewrites, do not keep old rows for old snapshots.
        """
        remote.execute(f"set transaction isolation level repeatable read; {SAME_TEXTS}")
        relations = [RelationId(t.definition["relation"]) for t in tables if t.definition is not None]
        kept = [buffer for relation in relations for buffer in buffers(relation)]
        try:
            lock_tables(remote, [*(RelationName(t.schema, t.name) for t in tables), *kept], ACCESS_SHARE)
        except DatabaseError as error:
            if error.sqlstate == UNDEFINED_TABLE:
                raise Misfit from error
            raise
        row = remote.execute("select pg_current_snapshot()::text, now()").fetchone()
        assert row is not None
        place = installation(remote)
        place.check()
        rows = remote.execute(
            "select source_relid::bigint, frontier::text from pgtrickle.pgt_remote_readers where reader = %s",
            (database.reader,),
        ).fetchall()
        since = {relation: None if seen is None else Frontier.parse(seen) for relation, seen in rows}
        return cls(remote, database, Frontier.parse(row[0]), row[1], place.place, since)

    def definition(self, table: AttachedTable) -> dict[str, Any] | None:
        """The definition of a table in the snapshot."""
        return describe_origin(self.remote, table)

    def keeps_since(self, table: AttachedTable) -> bool:
        """Whether all changes since the frontier of our copy are there."""
        return is_kept(self.kept, self.database, self.place, table)

    def captured(self, table: AttachedTable) -> tuple[str, ...]:
        """The columns that a window is read with."""
        return table.wanted

    def copy_window(
        self, table: AttachedTable, names: Sequence[str], local: Connection, incoming: sql.Identifier
    ) -> int:
        """Copy the change rows that our copy lacks; returns how many bytes they were."""
        assert table.frontier is not None
        columns = [self._buffer_column(table, name) for name in names]
        arms = [
            sql.SQL("select xid, weight{} from {} where {}").format(
                sql.SQL("").join(sql.SQL(", {}").format(column) for column in columns),
                sql.Identifier(buffer.schema, buffer.name),
                unseen_by(table.frontier),
            )
            for buffer in buffers(self._relation(table))
        ]
        places = ["xid", "weight", *(f"k{number}" for number in range(1, len(names) + 1))]
        return copy_across(self.remote, sql.SQL(" union all ").join(arms), {}, local, incoming, places)

    def copy_rows(self, table: AttachedTable, local: Connection, rows: sql.Identifier) -> None:
        """Copy all rows; without columns, only their number."""
        copy_rows(self.remote, table, local, rows)

    def _relation(self, table: AttachedTable) -> RelationId:
        assert table.definition is not None
        return RelationId(table.definition["relation"])

    def _buffer_column(self, table: AttachedTable, name: str) -> sql.Identifier:
        assert table.definition is not None
        number = next(c["number"] for c in table.definition["columns"] if c["name"] == name)
        return sql.Identifier(f"c{number}")


def copy_rows(remote: Connection, table: AttachedTable, local: Connection, rows: sql.Identifier) -> None:
    """Copy all rows of a table in the present snapshot; without columns, only their number."""
    origin = sql.Identifier(table.schema, table.name)
    if not table.wanted:
        row = remote.execute(sql.SQL("select count(*) from {}").format(origin)).fetchone()
        assert row is not None
        local.execute(
            sql.SQL("insert into {} select from generate_series(1, {})").format(rows, sql.Literal(row[0]))
        )
        return
    listed = sql.SQL(", ").join(map(sql.Identifier, table.wanted))
    copy_across(remote, sql.SQL("select {} from {}").format(listed, origin), {}, local, rows, table.wanted)
