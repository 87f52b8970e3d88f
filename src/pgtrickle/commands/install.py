"""Put pgtrickle into a database, and take it out again."""

from __future__ import annotations

from pgtrickle.catalog.install import install as _install
from pgtrickle.catalog.install import uninstall as _uninstall
from pgtrickle.commands.connections import open_connection
from pgtrickle.model.errors import CommandRefused
from pgtrickle.model.names import quoted

_MAY_NOT = "42501"


def install(dsn: str) -> list[str]:
    """Create or upgrade schemas, tables and functions; says in sentences what was done. Again is harmless."""
    with open_connection(dsn) as connection:
        try:
            return _install(connection)
        except CommandRefused as refusal:
            if refusal.hint is None and refusal.refused_with == _MAY_NOT:
                refusal.hint = (
                    f"grant create, temporary on database {quoted(connection.info.dbname)}"
                    f" to {quoted(connection.info.user)}"
                )
            raise


def uninstall(dsn: str, *, drop_tables: bool = False) -> list[str]:
    """Remove everything of pgtrickle; stream tables stay as ordinary tables unless they are dropped."""
    with open_connection(dsn) as connection:
        return _uninstall(connection, drop_tables=drop_tables)
