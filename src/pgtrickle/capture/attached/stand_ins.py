"""Stand-ins for tables of other databases: created, and altered like their origins."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from pgtrickle.capture.attached.origin import describe_origin, problem_with, shape_of
from pgtrickle.capture.attached.tables import attached_tables
from pgtrickle.model.attached import AttachedDatabase, AttachedTable
from pgtrickle.model.errors import Busy
from pgtrickle.model.stream_table import RelationId
from pgtrickle.postgres.connection import Connection, DatabaseError, sql
from pgtrickle.postgres.locking import is_contention

LOCK_TIMEOUT: Final = "5s"


def note_error(local: Connection, table: AttachedTable, message: str | None) -> None:
    """Record why a table cannot be followed, or that it can be again."""
    # the copy is compared again when it can be followed again
    local.execute(
        "update pgtrickle.pgt_attached_tables set last_error = %s, frontier = null, position = null"
        " where table_id = %s and last_error is distinct from %s",
        (message, table.id, message),
    )


@dataclass(slots=True)
class StandIns:
    """The stand-ins of one attached database. `released` notes tables that differ from their origin.

    `describe` finds the definition of a table.
    """

    database: AttachedDatabase
    local: Connection
    remote: Connection
    released: dict[int, float] = field(default_factory=dict)
    describe: Callable[[Connection, AttachedTable], dict[str, Any] | None] = describe_origin

    def fit_all(self) -> None:
        """Create the stand-ins that are missing, and fit those whose origin was altered."""
        for table in attached_tables(self.local, self.database.alias):
            if table.last_error is None or table.is_read:
                self._fit(table)
        self.local.commit()
        self.remote.rollback()

    def _fit(self, table: AttachedTable) -> None:
        found = self.describe(self.remote, table)
        problem = problem_with(found) or self._missing_type(found)
        if not table.is_stand_in and table.relation is not None:
            problem = problem or self._unlike(table.relation, found)
            if problem is not None:
                self._release(table.relation, problem)
                return
        if problem is not None:
            note_error(self.local, table, problem)
        elif table.relation is not None and shape_of(found) == shape_of(table.definition):
            if found != table.definition:
                self._compare_again(table, found)
            elif table.last_error is not None:
                note_error(self.local, table, None)
        else:
            try:
                with self.local.transaction():
                    self._adopt(table, found)
            except DatabaseError as error:
                if is_contention(error):
                    raise Busy("a stand-in is locked by another session", hint="try again") from error
                note_error(self.local, table, (error.diag.message_primary or str(error)).strip())

    def _adopt(self, table: AttachedTable, found: dict[str, Any] | None) -> None:
        self.local.execute(sql.SQL("set local lock_timeout = {}").format(sql.Literal(LOCK_TIMEOUT)))
        text = json.dumps(found)
        if table.is_stand_in:
            self.local.execute("select pgtrickle_internal.fit_stand_in(%s, %s::jsonb)", (table.id, text))
        else:
            self.local.execute(
                "update pgtrickle.pgt_attached_tables set definition = %s::jsonb, frontier = null,"
                " position = null, last_error = null where table_id = %s",
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
            " position = null, last_error = null where table_id = %s",
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
