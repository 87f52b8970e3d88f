"""Lists the stream tables of all databases: those of the configuration file, or of a server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from pgtrickle.catalog.install import catalog_owner, is_installed_for
from pgtrickle.commands.connections import open_connection
from pgtrickle.commands.databases import served_databases
from pgtrickle.commands.status import StreamTableStatus, table_statuses
from pgtrickle.model.databases import DiscoveredServer
from pgtrickle.model.errors import PgTrickleError
from pgtrickle.model.records import Record
from pgtrickle.model.settings import Settings
from pgtrickle.postgres.addresses import address_parts, with_parts
from pgtrickle.postgres.statements import load


@dataclass(frozen=True, slots=True, repr=False)
class DatabaseTables(Record):
    """The stream tables of one database, or why they cannot be listed."""

    table_columns: ClassVar = ("database", "stream_tables", "error")

    database: str
    stream_tables: int
    tables: tuple[StreamTableStatus, ...]
    error: str | None = None


def list_databases(settings: Settings, environment: Mapping[str, str]) -> list[DatabaseTables]:
    """The stream tables of every database, in the order of the databases.

    Without a configuration file, these are the databases on the server of `dsn` in which pgtrickle belongs to
    the role that owns it in the database of `dsn`, or to one whose rights the caller has.
    """
    found = served_databases(settings, (), environment)
    addresses = [] if settings.config is None else [(one.name, one.dsn) for one in found.databases]
    servers = found.servers
    if settings.config is None:
        servers = (DiscoveredServer(settings.dsn),)
    for server in servers:
        addresses += _installed(server)
    return [_tables(name, dsn) for name, dsn in addresses]


def _installed(server: DiscoveredServer) -> Iterator[tuple[str, str]]:
    """The databases of a server with pgtrickle, and those that cannot be asked."""
    with open_connection(server.dsn) as connection:
        rows = connection.execute(load("pgtrickle.scheduler.service", "sql/databases.sql")).fetchall()
        trusted = catalog_owner(connection)
    for (name,) in rows:
        if name in server.exclude:
            continue
        dsn = with_parts(server.dsn, dbname=name)
        try:
            with open_connection(dsn) as connection:
                if not is_installed_for(connection, trusted):
                    continue
        except PgTrickleError:
            # listing its stream tables says what is wrong
            pass
        yield str(address_parts(dsn)["dbname"]), dsn


def _tables(name: str, dsn: str) -> DatabaseTables:
    try:
        tables = tuple(table_statuses(dsn))
        return DatabaseTables(name, len(tables), tables)
    except PgTrickleError as error:
        return DatabaseTables(name, 0, (), f"{error.code}: {error.message}")
