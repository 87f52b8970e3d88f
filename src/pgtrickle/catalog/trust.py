"""Whether it is safe to read and write tables of other roles."""

from __future__ import annotations

from collections.abc import Sequence

from pgtrickle.model.errors import CommandRefused, RightLost, SourceChanged
from pgtrickle.model.stream_table import StreamTable, StreamTableId
from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.locking import ROW_EXCLUSIVE, lock_tables


def untrusted_reads(
    connection: Connection, tables: Sequence[StreamTableId]
) -> dict[StreamTableId, CommandRefused]:
    """The stream tables whose refresh would run untrusted code before it writes, each with the error.

    The code may be in their queries, or attached to their sources: PostgreSQL evaluates parts of index
    expressions, constraints and the like while it plans a query.
    """
    rows = connection.execute(
        "select t.id, pgtrickle_internal.untrusted_reads(t.id) from unnest(%s::bigint[]) as t(id)",
        (list(tables),),
    ).fetchall()
    return {StreamTableId(table): _untrusted_read(code) for table, code in rows if code}


def _untrusted_read(code: str) -> CommandRefused:
    return CommandRefused(
        f"a refresh would lend others the rights of the sidecar: {code}",
        hint="let an administrator take the function or foreign table over, or drop what uses it",
    )


def lock_for_apply(connection: Connection, *tables: StreamTable) -> None:
    """Lock tables for writing, and refuse them if they would run untrusted code or show too much.

    While we hold the lock no trigger or constraint can be added, so the checks stay valid.
    """
    lock_tables(connection, (table.name for table in tables), ROW_EXCLUSIVE)
    rows = connection.execute(
        "select (select string_agg(code, '; ') from pgtrickle_internal.untrusted_code(t.id) code),"
        " (select string_agg(lost, '; ') from pgtrickle_internal.lost_rights(t.pgt_id) lost),"
        " pgtrickle_internal.untrusted_reads(t.pgt_id), to_regclass(t.name) = t.id,"
        " row_security_active(t.id), current_user"
        " from unnest(%s::oid[], %s::bigint[], %s::text[]) with ordinality as t(id, pgt_id, name, position)"
        " order by t.position",
        (
            [table.relation for table in tables],
            [table.id for table in tables],
            [table.name.sql for table in tables],
        ),
    ).fetchall()
    for table, (code, lost, read_code, is_itself, hides_rows, role) in zip(tables, rows, strict=True):
        if not is_itself:
            raise SourceChanged(
                f"{table.name} was renamed, and another table has its name", hint="refresh it again"
            )
        if read_code:
            raise _untrusted_read(read_code)
        if code:
            raise CommandRefused(
                f"{table.name} would run code of others with the rights of {role}: {code}",
                hint="remove it, or let an administrator take the function over:"
                f" alter function … owner to {role}",
            )
        if lost:
            raise RightLost(
                f"{table.name} is not refreshed: {lost}",
                hint="grant the right again and resume the stream table, or drop it",
            )
        if hides_rows:
            raise CommandRefused(
                f"row-level security hides rows of {table.name} from us",
                hint=f"create policy refresh on {table.name} to {role} using (true) with check (true)",
            )
