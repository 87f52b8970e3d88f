"""Installs pgtrickle in a database and uninstalls it."""

from __future__ import annotations

from pgtrickle.catalog.install import install as _install
from pgtrickle.catalog.install import uninstall as _uninstall
from pgtrickle.commands.connections import open_connection
from pgtrickle.model.errors import CommandRefused
from pgtrickle.model.names import quoted

_INSUFFICIENT_PRIVILEGE = "42501"


def install(dsn: str) -> list[str]:
    """Install or upgrade the schemas, tables and functions; return what was done. Safe to call again."""
    with open_connection(dsn) as connection:
        try:
            return _install(connection)
        except CommandRefused as refusal:
            if refusal.hint is None and refusal.refused_with == _INSUFFICIENT_PRIVILEGE:
                refusal.hint = (
                    f"grant create, temporary on database {quoted(connection.info.dbname)}"
                    f" to {quoted(connection.info.user)}"
                )
            raise


def uninstall(dsn: str, *, drop_tables: bool = False) -> list[str]:
    """Remove pgtrickle from the database. Stream tables become ordinary tables unless dropped as well."""
    with open_connection(dsn) as connection:
        return _uninstall(connection, drop_tables=drop_tables)
