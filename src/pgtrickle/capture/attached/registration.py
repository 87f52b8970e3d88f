"""Has another database capture what our stream tables read of it."""

from __future__ import annotations

from dataclasses import dataclass

from pgtrickle.capture.attached.stand_ins import note_error
from pgtrickle.capture.attached.tables import attached_tables
from pgtrickle.model.attached import AttachedDatabase, AttachedTable
from pgtrickle.model.errors import AttachedFailed, Busy
from pgtrickle.postgres.connection import Connection, DatabaseError
from pgtrickle.postgres.locking import is_contention


@dataclass(slots=True)
class Registration:
    """Our place among the readers of an attached database; `label` is what it calls us."""

    database: AttachedDatabase
    local: Connection
    remote: Connection
    label: str

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
                    note_error(self.local, table, refusal.message)
                    self.local.commit()
        kept = [table.definition["relation"] for table in reading if table.definition is not None]
        if set(known) - set(kept):
            self.remote.execute(
                "select pgtrickle_internal.leave_origins(%s, %s::oid[])", (self.database.reader, kept)
            )
        self.remote.commit()
        # what nobody reads any more is compared if somebody reads it again
        self.local.execute(
            "update pgtrickle.pgt_attached_tables set followed_columns = '{}', frontier = null"
            " where table_id = any (%s)",
            ([table.id for table in tables if not table.is_read and table.is_followed],),
        )
        self.local.commit()
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


def _busy(table: AttachedTable, blockers: str) -> Busy:
    return Busy(
        f"{table.schema}.{table.name} cannot get triggers now, because of {blockers}",
        hint="the sidecar keeps trying",
    )
