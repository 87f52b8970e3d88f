"""Which databases a process serves: those of its options, of a configuration file, or all of a server."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

from pgtrickle.commands.databases_file import check_address, read_databases
from pgtrickle.model.databases import Databases, DiscoveredServer, ServedDatabase
from pgtrickle.model.errors import BadSetting
from pgtrickle.model.settings import Settings
from pgtrickle.postgres.addresses import address_parts


def served_databases(settings: Settings, dsns: Sequence[str], environment: Mapping[str, str]) -> Databases:
    """The databases of these addresses and of the configuration file, else that of the settings."""
    found = read_databases(Path(settings.config), environment) if settings.config is not None else Databases()
    given = tuple(dsns) or (() if settings.config is not None else (settings.dsn,))
    if settings.discover:
        servers = (*found.servers, *(DiscoveredServer(check_address(dsn, "--dsn")) for dsn in given))
        return Databases(found.databases, servers, found.unserved)
    names = {database.name for database in (*found.databases, *found.unserved)}
    databases = list(found.databases)
    for dsn in given:
        name = unique_name(check_address(dsn, "--dsn"), names)
        names.add(name)
        listen = settings.listen_dsn if len(given) == 1 and not found.databases else None
        databases.append(ServedDatabase(name, dsn, listen_dsn=listen))
    if settings.http_dsn is not None and (len(databases) != 1 or found.servers):
        raise BadSetting("http_dsn cannot be given for several databases", hint="leave it out")
    if settings.listen_dsn is not None and len(databases) != 1:
        raise BadSetting(
            "listen_dsn cannot be given for several databases",
            hint="give each database its listen_dsn in the configuration file",
        )
    return Databases(tuple(databases), found.servers, found.unserved)


def configured_addresses(settings: Settings, environment: Mapping[str, str]) -> Callable[[str], str | None]:
    """Finds the address of a database by its name in the configuration file, which is read when needed."""

    @cache
    def addresses() -> dict[str, str]:
        if settings.config is None:
            return {}
        found = read_databases(Path(settings.config), environment)
        return {database.name: database.dsn for database in (*found.databases, *found.unserved)}

    return lambda reference: addresses().get(reference)


def unique_name(dsn: str, taken: set[str]) -> str:
    """What to call a database: its name, with the address of its server if that is not unique."""
    parts = {**_defaults(os.environ), **address_parts(dsn)}
    name = str(parts.get("dbname") or parts.get("service") or parts.get("user") or "database")
    if name in taken:
        name = f"{name}@{parts.get('host') or parts.get('hostaddr') or 'local'}:{parts.get('port') or 5432}"
    if name in taken:
        raise BadSetting(f"the database {name} is given twice", hint="give each database once")
    return name


def _defaults(environment: Mapping[str, str]) -> dict[str, str]:
    """What libpq takes from the environment."""
    variables = {"dbname": "PGDATABASE", "host": "PGHOST", "port": "PGPORT", "user": "PGUSER"}
    return {key: environment[name] for key, name in variables.items() if environment.get(name)}
