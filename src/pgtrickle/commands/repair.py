"""Repairs a copied database, broken capture, or a single stream table."""

from __future__ import annotations

from pgtrickle.commands.connections import check_known, open_installed
from pgtrickle.postgres.connection import check_writable


def repair(dsn: str, name: str | None = None) -> list[str]:
    """Repair one stream table, or everything in the database; return what was done, in sentences."""
    with open_installed(dsn) as connection:
        check_writable(connection)
        full_name = None if name is None else check_known(connection, name)
        with connection.transaction():
            if full_name is None:
                found = connection.execute("select * from pgtrickle.repair()")
            else:
                found = connection.execute("select pgtrickle.repair_stream_table(%s)", (full_name,))
            return [sentence for (sentence,) in found]
