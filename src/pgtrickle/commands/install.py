"""Installs pgtrickle in a database and uninstalls it."""

from __future__ import annotations

from pathlib import Path

from pgtrickle.catalog.install import check_installed
from pgtrickle.catalog.install import install as _install
from pgtrickle.catalog.install import uninstall as _uninstall
from pgtrickle.commands.connections import open_connection
from pgtrickle.commands.export import export_definitions
from pgtrickle.model.errors import BadUsage, CommandRefused, StillInUse
from pgtrickle.model.names import quoted
from pgtrickle.postgres.connection import Connection

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


def uninstall(
    dsn: str, *, drop_tables: bool = False, export: str | None = None, force: bool = False
) -> list[str]:
    """Remove pgtrickle from the database. Stream tables become ordinary tables unless dropped as well.

    `export` names a new file that gets the definitions first, as SQL. While a sidecar serves the database,
    only `force` removes it.
    """
    with open_connection(dsn) as connection:
        if not force:
            _check_not_served(connection)
        done = [_export(connection, export)] if export is not None else []
        return [*done, *_uninstall(connection, drop_tables=drop_tables)]


def _check_not_served(connection: Connection) -> None:
    """Raise if a sidecar has reported lately. A broken installation serves nothing."""
    row = connection.execute("select to_regclass('pgtrickle.pgt_sidecars') is not null").fetchone()
    if row != (True,):
        return
    serving = connection.execute(
        "select host, process from pgtrickle.pgt_sidecars"
        " where seen_at > clock_timestamp() - interval '15 s' order by seen_at desc limit 1"
    ).fetchone()
    if serving is not None:
        raise StillInUse(
            f"a sidecar serves this database: process {serving[1]} on {serving[0]}",
            hint="stop it first, or remove pgtrickle anyway with force => true",
        )


def _export(connection: Connection, file: str) -> str:
    check_installed(connection)
    text = export_definitions(connection)
    try:
        # a file that exists may be an older export
        with Path(file).open("x", encoding="utf-8") as out:
            out.write(text)
    except OSError as error:
        raise BadUsage(
            f"the definitions cannot be written to {file}: {error.strerror}", hint="name a new file"
        ) from error
    return f"Wrote the definitions to {file}."
