"""Detects changes of what a stream table relies on, and reacts to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from pgtrickle.catalog.alerts import alert
from pgtrickle.catalog.differences import Change, difference, ground_difference
from pgtrickle.model.errors import Busy, CommandRefused, RightLost, SourceChanged
from pgtrickle.model.stream_table import StreamTableId
from pgtrickle.postgres.connection import Connection, DatabaseError, to_refusal
from pgtrickle.postgres.locking import BRIEF_LOCKS, SHORT_LOCKS, is_contention
from pgtrickle.postgres.rows import row_as, rows_as

GRANT: Final = "grant the right again, or drop the stream table"
_REMEDY: Final = "undo that change, or adapt the query with pgtrickle.alter_stream_table"
HOLD_WAITING: Final = """
select s.ground_error, exists (
    select from pgtrickle.pgt_ground g where g.pgt_id = s.pgt_id and g.kind = 'itself')
from pgtrickle.pgt_stream_tables s where s.pgt_id = %s for no key update of s"""
HOLD: Final = f"{HOLD_WAITING} skip locked"


@dataclass(frozen=True, slots=True)
class GroundState:
    """Whether what a stream table relies on has other versions than recorded.

    `code` identifies the state of everything that PostgreSQL executes in its newest version, whatever the
    snapshot of a query.
    """

    is_moved: bool
    code: int


def ground_state(connection: Connection, tables: Sequence[StreamTableId]) -> GroundState:
    """Whether catalog rows that stream tables rely on were written since they were recorded."""
    result = connection.execute(
        "select is_moved, code from pgtrickle_internal.ground_state(%s::bigint[])", (list(tables),)
    )
    return row_as(GroundState, result)


def poll_ground(connection: Connection, seen: str | None) -> tuple[str, tuple[StreamTableId, ...]]:
    """The snapshot of this poll, and the stream tables whose ground has other versions than recorded.

    `seen` is the snapshot of a poll that found nothing. If no transaction has ended since, it
    checks nothing.
    """
    row = connection.execute(
        "select snapshot, moved from pgtrickle_internal.poll_ground(%s)", (seen,)
    ).fetchone()
    assert row is not None
    return row[0], tuple(map(StreamTableId, row[1] or ()))


def changes_under(connection: Connection, table: StreamTableId) -> tuple[Change, ...]:
    """What has changed under a stream table since its query was analysed; usually nothing.

    Inside a snapshot, the result is as of that snapshot.
    """

    def type_name(type_id: int, modifier: int) -> str:
        row = connection.execute("select format_type(%s, %s)", (type_id, modifier)).fetchone()
        return str(row[0]) if row else "unknown"

    result = connection.execute(
        "select source_type as kind, source_name as name, stored, present"
        " from pgtrickle_internal.changed_dependencies(%s)",
        (table,),
    )
    found: list[Change | None] = [*rows_as(partial(difference, type_name=type_name), result)]
    result = connection.execute(
        "select kind, name, stored, present from pgtrickle_internal.changed_ground(%s)", (table,)
    )
    found += rows_as(partial(ground_difference, type_name=type_name), result)
    rows = connection.execute(
        "select pgtrickle_internal.lost_rights(%(id)s) union select"
        " pgtrickle_internal.lost_own_rights(%(id)s)",
        {"id": table},
    ).fetchall()
    found += [Change(what, stops=True, hint=GRANT, is_lost_right=True) for (what,) in rows]
    known = {change.what: change for change in found if change is not None}
    # changes that stop the stream table come first
    return tuple(sorted(known.values(), key=lambda change: not change.stops))


def settle(connection: Connection, table: StreamTableId, *, waits: bool) -> str | None:
    """Compare what a stream table relies on with what was recorded, and act on the difference.

    If nothing relevant has changed, record the versions, so that they are not compared again. Otherwise
    analyse the query again, mark the table for a reload, and return the reason. Raises SourceChanged or
    RightLost if the query can no longer be tracked, and records that too. Raises Busy if another session
    holds the stream table.
    """
    changes = _compare_and_record(connection, table, waits=waits)
    if not changes:
        return None
    reason = "; ".join(change.what for change in changes[:3])
    if changes[0].stops:
        raise (RightLost if changes[0].is_lost_right else SourceChanged)(reason, hint=changes[0].hint)
    try:
        reanalyse(connection, table, reason, waits=waits)
    except SourceChanged as refusal:
        _note_refusal(connection, table, refusal.message)
        raise
    return reason


def reanalyse(connection: Connection, table: StreamTableId, reason: str, *, waits: bool = True) -> None:
    """Update dependencies, buffers and triggers to the query, and mark the table for a reload.

    Raises SourceChanged if the query can no longer be tracked, Busy if a source is locked. Runs in a separate
    transaction.
    """
    try:
        with connection.transaction():
            # other refreshes may be reading the same source
            connection.execute(SHORT_LOCKS if waits else BRIEF_LOCKS)
            connection.execute("select pgtrickle_internal.reanalyse(%s, %s)", (table, reason))
            alert(connection, "reinitialize_needed", pgt_id=table, reason=reason)
    except DatabaseError as error:
        refusal: CommandRefused = to_refusal(error)
        if is_contention(error):
            raise Busy(refusal.message, hint=refusal.hint) from error
        raise SourceChanged(f"{reason}: {refusal.message}", hint=refusal.hint or _REMEDY) from error


def forget_dropped(connection: Connection) -> list[str]:
    """Clean up after tables that their owners dropped or renamed. Returns the stream tables that it removed.

    A stream table whose name belongs to a new table now stays, in status ERROR: a restore may have created
    that table.
    """
    with connection.transaction():
        connection.execute(
            "select pgtrickle_internal.mark_unbound(s.pgt_id) from pgtrickle.pgt_stream_tables s"
            " where not exists (select from pg_class c where c.oid = s.pgt_relid)"
            " and pgtrickle_internal.named_relation(s.pgt_id) is not null and not pgtrickle.is_copy()"
        )
        removed = connection.execute(
            "select s.pgt_id, format('%I.%I', s.pgt_schema, s.pgt_name), pgtrickle_internal.forget(s.pgt_id)"
            " from pgtrickle.pgt_stream_tables s"
            " where not exists (select from pg_class c where c.oid = s.pgt_relid)"
            " and pgtrickle_internal.named_relation(s.pgt_id) is null and not (select pgtrickle.is_copy())"
        ).fetchall()
        connection.execute(
            "update pgtrickle.pgt_stream_tables s"
            " set pgt_schema = n.nspname, pgt_name = c.relname, pgt_owner = c.relowner"
            " from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = s.pgt_relid"
            " and (s.pgt_schema, s.pgt_name, s.pgt_owner) is distinct from (n.nspname, c.relname, c.relowner)"
            " and not (select pgtrickle.is_copy())"
        )
    return [name for _, name, _ in removed]


def _compare_and_record(connection: Connection, table: StreamTableId, *, waits: bool) -> tuple[Change, ...]:
    """The relevant changes. If there are none, that is recorded in the same snapshot."""
    try:
        with connection.transaction():
            connection.execute("set transaction isolation level repeatable read")
            row = connection.execute(HOLD_WAITING if waits else HOLD, (table,)).fetchone()
            if row is None:
                return ()
            connection.execute(SHORT_LOCKS if waits else BRIEF_LOCKS)
            error, is_recorded = row
            changes = changes_under(connection, table)
            if not changes and error is not None:
                return (Change(f"no longer true: {error}"),)
            if not changes and not is_recorded:
                connection.execute("select pgtrickle_internal.adopt_ground(%s)", (table,))
            elif not changes:
                connection.execute("select pgtrickle_internal.note_ground(%s)", (table,))
            elif changes[0].stops:
                _stop(connection, table, "; ".join(change.what for change in changes[:3]))
            return changes
    except DatabaseError as error:
        if is_contention(error):
            raise Busy(
                "another session is refreshing or altering the stream table", hint="try again in a moment"
            ) from error
        raise


def _note_refusal(connection: Connection, table: StreamTableId, message: str) -> None:
    """Record that the query was refused, unless what it relies on has changed back in the meantime."""
    with connection.transaction():
        connection.execute("set transaction isolation level repeatable read")
        if changes_under(connection, table):
            connection.execute("select pgtrickle_internal.note_refused(%s)", (table,))
            _stop(connection, table, message)


def _stop(connection: Connection, table: StreamTableId, message: str) -> None:
    """Stop refreshing the stream table until what it relies on changes again."""
    connection.execute("select pgtrickle_internal.note_versions(%s)", (table,))
    connection.execute(
        "update pgtrickle.pgt_stream_tables set ground_error = %s where pgt_id = %s", (message, table)
    )
