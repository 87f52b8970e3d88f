"""Decodes the changes of tables of another database, and writes them to our copies of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pgtrickle.capture.attached.log.folding import Fold, LostTrack
from pgtrickle.capture.attached.receiving import OF_THE_TABLE
from pgtrickle.capture.wal.pgoutput import Begin, Delete, Insert, Message, Relation, Truncate, Update
from pgtrickle.capture.wal.reader import LogReader, SlotTaken
from pgtrickle.capture.wal.slot import Lsn
from pgtrickle.model.attached import AttachedTable
from pgtrickle.model.errors import Busy, Diverged
from pgtrickle.postgres.connection import Connection, DatabaseError, sql

HELD_BYTES: Final = 16 << 20
"""Changes are written to the copies when they take this much memory together."""
_NOTHING: Final = "3:3:"
"""A snapshot that has seen nothing."""


class LostTables(Exception):
    """Tables that have to be compared, because their changes cannot be followed any further."""

    def __init__(self, tables: Sequence[AttachedTable], reloads: bool = False) -> None:
        super().__init__()
        self.tables, self.reloads = tables, reloads


class FailedTable(Exception):
    """A table that cannot be followed because of its values or its definition: the others go on."""

    def __init__(self, table: AttachedTable, error: DatabaseError) -> None:
        super().__init__()
        self.table, self.message = table, (error.diag.message_primary or str(error)).strip()


@dataclass(frozen=True, slots=True)
class Decoded:
    """The position that decoding has reached, how many change rows came, and whether there is more."""

    position: Lsn
    changes: int
    has_more: bool


@dataclass(slots=True)
class Decoding:
    """Decodes changes of tables and writes them to the copies, inside the transaction of a round."""

    reader: LogReader
    local: Connection
    tables: Sequence[AttachedTable]
    _folds: dict[int, Fold] = field(default_factory=dict)
    _changes: int = 0
    _size: int = 0

    def decode(self, stored: Lsn | None, end: Lsn, most: int) -> Decoded:
        """Decode every transaction that committed from the stored position on and before the end."""
        if stored is None or not self.tables:
            return Decoded(end, 0, False)
        self._folds = {table.definition["relation"]: Fold(table) for table in self.tables if table.definition}
        is_wanted = False
        try:
            for message in self.reader.read(end, most):
                if isinstance(message, Begin):
                    is_wanted = stored <= message.commit_lsn < end
                elif message is not None and (is_wanted or isinstance(message, Relation)):
                    self._take(message)
        except SlotTaken as taken:
            raise Busy("another session reads the slot", hint="try again in a moment") from taken
        self._write()
        position = min(self.reader.reached, end)
        return Decoded(position, self._changes, position < end)

    def _take(self, message: Message) -> None:
        if isinstance(message, Truncate):
            gone = [self._folds[relation].table for relation in message.relations if relation in self._folds]
            if gone:
                raise LostTables(gone)
            return
        if not isinstance(message, Relation | Insert | Update | Delete):
            return
        fold = self._folds.get(message.id if isinstance(message, Relation) else message.relation)
        if fold is None:
            return
        before = fold.size
        try:
            _TAKES[type(message)](fold, message)
        except LostTrack:
            raise LostTables([fold.table]) from None
        self._size += fold.size - before
        if self._size >= HELD_BYTES:
            self._write()

    def _write(self) -> None:
        for fold in self._folds.values():
            if not fold.is_empty:
                try:
                    self._changes += self._write_table(fold)
                except DatabaseError as error:
                    if error.sqlstate == Diverged.sqlstate:
                        raise LostTables([fold.table], reloads=True) from error
                    if (error.sqlstate or "")[:2] not in OF_THE_TABLE:
                        raise
                    raise FailedTable(fold.table, error) from error
                fold.clear()
        self._size = 0

    def _write_table(self, fold: Fold) -> int:
        local, table = self.local, fold.table
        names, key = list(table.wanted), list(fold.key)
        local.execute("select pgtrickle_internal.create_incoming(%s, %s::name[])", (table.relation, names))
        kind = "decoded" if key else "incoming"
        if key:
            local.execute(
                "select pgtrickle_internal.create_decoded(%s, %s::name[], %s::name[])",
                (table.relation, names, key),
            )
        into = sql.SQL("copy {} ({}) from stdin (encoding 'UTF8')").format(
            sql.Identifier("pg_temp", f"{kind}_{table.relation}"),
            sql.SQL(", ").join(map(sql.Identifier, fold.columns())),
        )
        with local.cursor() as cursor, cursor.copy(into) as copy:
            for line in fold.lines():
                copy.write(line)
        if key:
            local.execute(
                "select pgtrickle_internal.expand_decoded(%s, %s::name[], %s::name[])",
                (table.relation, names, key),
            )
        local.execute(sql.SQL("analyze {}").format(sql.Identifier("pg_temp", f"incoming_{table.relation}")))
        row = local.execute(
            "select pgtrickle_internal.receive_changes(%s, %s::name[], %s::name[], %s::pg_snapshot)",
            (table.relation, names, list(table.key()), _NOTHING),
        ).fetchone()
        assert row is not None
        return int(row[0])


_TAKES: Final[dict[type, Callable[[Fold, Any], None]]] = {
    Relation: Fold.describe,
    Insert: Fold.insert,
    Update: Fold.update,
    Delete: Fold.delete,
}
