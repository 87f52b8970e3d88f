"""Whether it is safe to write to a stream table, which belongs to somebody else."""

from __future__ import annotations

from pgtrickle.model.errors import CommandRefused
from pgtrickle.model.stream_table import StreamTable
from pgtrickle.postgres.connection import Connection, sql


def lock_for_apply(connection: Connection, table: StreamTable) -> None:
    """Lock the table as a writer does, and refuse it if code of its owner would run with our rights.

    Triggers and constraints cannot be added while we hold the lock, so what was checked stays true.
    """
    name = sql.Identifier(table.name.schema, table.name.name)
    connection.execute(sql.SQL("lock table {} in row exclusive mode").format(name))
    row = connection.execute(
        "select (select string_agg(code, '; ') from pgtrickle.untrusted_code(%(id)s) code),"
        " row_security_active(%(id)s::oid), current_user",
        {"id": table.relation},
    ).fetchone()
    assert row is not None
    code, hides_rows, role = row
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
