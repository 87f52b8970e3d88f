"""Whether it is safe to read and write tables of other roles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgtrickle.model.errors import HiddenRows, RightLost, SourceChanged, UntrustedCode
from pgtrickle.model.hints import call
from pgtrickle.model.stream_table import StreamTable, StreamTableId
from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.locking import ROW_EXCLUSIVE, lock_tables
from pgtrickle.postgres.rows import rows_as
from pgtrickle.postgres.statements import load


@dataclass(frozen=True, slots=True)
class _Findings:
    """What the checks of a stream table found before a write; `role` is the role that would write."""

    code: str | None
    lost: str | None
    read_code: str | None
    is_itself: bool | None
    hides_rows: bool
    role: str


def untrusted_reads(
    connection: Connection, tables: Sequence[StreamTableId]
) -> dict[StreamTableId, UntrustedCode]:
    """The stream tables whose refresh would run untrusted code before it writes, each with the error.

    The code may be in their queries, or attached to their sources: PostgreSQL evaluates parts of index
    expressions, constraints and the like while it plans a query.
    """
    rows = connection.execute(
        "select pgt_id, string_agg(code, '; ') from pgtrickle_internal.untrusted_reads(%s::bigint[])"
        " group by pgt_id",
        (list(tables),),
    ).fetchall()
    return {StreamTableId(table): _untrusted_read(code) for table, code in rows}


def _untrusted_read(code: str) -> UntrustedCode:
    return UntrustedCode(
        f"a refresh would run code of another role with the rights of the sidecar: {code}",
        hint="let an administrator take over the function or foreign table, or drop what uses it",
    )


def lock_for_apply(connection: Connection, *tables: StreamTable) -> None:
    """Lock tables for writing, and refuse them if they would run untrusted code or show too much.

    While we hold the lock no trigger or constraint can be added, so the checks stay valid.
    """
    lock_tables(connection, (table.name for table in tables), ROW_EXCLUSIVE)
    result = connection.execute(
        load("pgtrickle.catalog", "sql/queries/check_before_write.sql"),
        {
            "relations": [table.relation for table in tables],
            "ids": [table.id for table in tables],
            "names": [table.name.sql for table in tables],
        },
    )
    for table, found in zip(tables, rows_as(_Findings, result), strict=True):
        if not found.is_itself:
            raise SourceChanged(
                f"{table.name} was renamed, and another table has its name", hint="refresh it again"
            )
        if found.read_code:
            raise _untrusted_read(found.read_code)
        if found.code:
            raise UntrustedCode(
                f"{table.name} would run code of another role with the rights of {found.role}: {found.code}",
                hint="remove it, or let an administrator take over the function:"
                f" alter function … owner to {found.role}",
            )
        if found.lost:
            raise RightLost(
                f"{table.name} cannot be refreshed: {found.lost}",
                hint=f"grant the right again and run {call('resume_stream_table', table.name)},"
                " or drop the stream table",
            )
        if found.hides_rows:
            raise HiddenRows(
                f"row-level security hides rows of {table.name} from {found.role}",
                hint=f"create policy refresh on {table.name} to {found.role} using (true) with check (true)",
            )
