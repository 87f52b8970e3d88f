"""Getting out of trouble: bind a copy anew by name, mend what is broken, load a stream table anew."""

from __future__ import annotations

from pgtrickle.commands.connections import check_known, open_installed
from pgtrickle.postgres.connection import check_writable


def repair(dsn: str, name: str | None = None) -> list[str]:
    """Repair one stream table, or everything in the database; says in sentences what was done."""
    with open_installed(dsn) as connection:
        check_writable(connection)
        full_name = None if name is None else check_known(connection, name)
        with connection.transaction():
            if full_name is None:
                found = connection.execute("select * from pgtrickle.repair()")
            else:
                found = connection.execute("select pgtrickle.repair_stream_table(%s)", (full_name,))
            return [sentence for (sentence,) in found]
