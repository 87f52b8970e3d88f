"""Whether it is safe to write to a stream table, which belongs to somebody else."""

from __future__ import annotations

from pgtrickle.model.errors import CommandRefused
from pgtrickle.model.stream_table import StreamTable
from pgtrickle.postgres.connection import Connection, sql


def lock_for_apply(connection: Connection, *tables: StreamTable) -> None:
    """Lock tables as a writer does, and refuse them if code of their owner would run with our rights.

    Triggers and constraints cannot be added while we hold the lock, so what was checked stays true.
    """
    names = sql.SQL(", ").join(sql.Identifier(table.name.schema, table.name.name) for table in tables)
    connection.execute(sql.SQL("lock table {} in row exclusive mode").format(names))
    rows = connection.execute(
        "select (select string_agg(code, '; ') from pgtrickle.untrusted_code(t.id) code),"
        " row_security_active(t.id), current_user"
        " from unnest(%s::oid[]) with ordinality as t(id, position) order by t.position",
        ([table.relation for table in tables],),
    ).fetchall()
    for table, (code, hides_rows, role) in zip(tables, rows, strict=True):
        if code:
            raise CommandRefused(
                f"{table.name} would run code of its owner with our rights: {code}",
                hint=f"declare the trigger function SECURITY DEFINER, or let {role} own the function",
            )
        if hides_rows:
            raise CommandRefused(
                f"row-level security hides rows of {table.name} from us",
                hint=f"create policy refresh on {table.name} to {role} using (true) with check (true)",
            )
