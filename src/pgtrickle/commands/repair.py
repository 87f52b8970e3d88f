"""Getting out of trouble: bind a copy anew by name, mend what is broken, load a stream table anew."""

from __future__ import annotations

from pgtrickle.commands.opening import check_known, opened
from pgtrickle.postgres.connection import check_writable


def repair(dsn: str, name: str | None = None) -> list[str]:
    """Repair one stream table, or everything in the database; says in sentences what was done."""
    with opened(dsn) as connection:
        check_writable(connection)
        if name is not None:
            check_known(connection, name)
        with connection.transaction():
            if name is None:
                found = connection.execute("select * from pgtrickle.repair()")
            else:
                found = connection.execute("select pgtrickle.repair_stream_table(%s)", (name,))
            return [sentence for (sentence,) in found]
