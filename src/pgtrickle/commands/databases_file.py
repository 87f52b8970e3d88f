"""Reads the file that says which databases a sidecar serves. It refers to passwords and contains none."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pgtrickle.model.databases import QUOTA, Databases, DeclaredOrigin, DiscoveredServer, ServedDatabase
from pgtrickle.model.errors import BadSetting
from pgtrickle.model.setting import one_of
from pgtrickle.model.settings import Pooling
from pgtrickle.postgres.addresses import address_parts, with_parts
from pgtrickle.postgres.pool import check_connection_limit

_KEYS: Final = {"dsn", "service", "password", "enabled", "quota", "pooler", "max_connections"}
_OF_DATABASES: Final = _KEYS | {"listen_dsn", "origins", "served"}
_OF_SERVERS: Final = _KEYS | {"exclude"}
_MOST_WORKERS: Final = 64


def read_databases(file: Path, environment: Mapping[str, str]) -> Databases:
    """The databases and servers of a configuration file; secrets come from where it refers to."""
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadSetting(
            f"{file} cannot be read: {error.strerror or error}",
            hint="check the path of the configuration file",
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadSetting(f"{file} is not valid TOML: {error}", hint="correct the file") from None
    _check_keys(content, {"database", "server"}, str(file))
    enabled = [
        (_database(name, values, f"[database.{name}] of {file}", environment), values)
        for name, values in _sections(content, "database", file)
        if _value(values, "enabled", bool, True, f"[database.{name}] of {file}")
    ]
    unserved = tuple(
        database
        for database, values in enabled
        if not _value(values, "served", bool, True, f"[database.{database.name}] of {file}")
    )
    databases = tuple(database for database, _ in enabled if database not in unserved)
    servers = tuple(
        _server(values, f"[server.{name}] of {file}", environment)
        for name, values in _sections(content, "server", file)
        if _value(values, "enabled", bool, True, f"[server.{name}] of {file}")
    )
    if not databases and not servers:
        raise BadSetting(
            f"{file} has no database that is enabled and served",
            hint='add one: [database.shop], and below it dsn = "dbname=shop"',
        )
    return Databases(databases, servers, unserved)


def _database(
    name: str, values: Mapping[str, Any], where: str, environment: Mapping[str, str]
) -> ServedDatabase:
    _check_keys(values, _OF_DATABASES, where)
    listen = _value(values, "listen_dsn", str, None, where)
    return ServedDatabase(
        name,
        _address(values, where, environment),
        _whole(values, "quota", QUOTA, 1, _MOST_WORKERS, where) or QUOTA,
        None if listen is None else _with_secret(check_address(listen, where), values, where, environment),
        _pooler(values, where),
        _connections(values, where),
        _origins(values, where),
    )


def _origins(values: Mapping[str, Any], where: str) -> tuple[DeclaredOrigin, ...]:
    """The tables whose origin is in another database: `schema.table` = `database.schema.table`."""
    found = []
    for table, origin in _value(values, "origins", dict, {}, where).items():
        here = table.split(".")
        there = origin.rsplit(".", 2) if isinstance(origin, str) else []
        if len(here) != 2 or len(there) != 3 or not all([*here, *there]):
            raise BadSetting(
                f"the origin of {table} in {where} is not a table of another database",
                hint='write "schema.table" = "database.schema.table"',
            )
        found.append(DeclaredOrigin(*here, *there))
    return tuple(found)


def _server(values: Mapping[str, Any], where: str, environment: Mapping[str, str]) -> DiscoveredServer:
    _check_keys(values, _OF_SERVERS, where)
    excluded = _value(values, "exclude", list, [], where)
    if not all(isinstance(name, str) for name in excluded):
        raise BadSetting(f"exclude in {where} is not a list of names", hint='write exclude = ["a", "b"]')
    return DiscoveredServer(
        _address(values, where, environment),
        frozenset(excluded),
        _whole(values, "quota", QUOTA, 1, _MOST_WORKERS, where) or QUOTA,
        _pooler(values, where),
        _connections(values, where),
    )


def _address(values: Mapping[str, Any], where: str, environment: Mapping[str, str]) -> str:
    dsn = check_address(_value(values, "dsn", str, "", where), where)
    service = _value(values, "service", str, None, where)
    if service is not None:
        dsn = with_parts(dsn, service=service)
    if not dsn:
        raise BadSetting(
            f"{where} has no address", hint='write dsn = "host=... dbname=...", or service = "..."'
        )
    return _with_secret(dsn, values, where, environment)


def _with_secret(dsn: str, values: Mapping[str, Any], where: str, environment: Mapping[str, str]) -> str:
    """The address with the password that the configuration refers to."""
    if address_parts(dsn).get("password"):
        raise BadSetting(
            f"{where} contains a password",
            hint='write password = { env = "NAME" } or { file = "path" }, or use a service or ~/.pgpass',
        )
    secret = values.get("password")
    if secret is None:
        return dsn
    match secret:
        case {"env": str(name), **rest} if not rest:
            if name not in environment:
                raise BadSetting(f"the variable {name} for the password in {where} is not set", hint="set it")
            return with_parts(dsn, password=environment[name])
        case {"file": str(path), **rest} if not rest:
            try:
                return with_parts(dsn, password=Path(path).read_text(encoding="utf-8").rstrip("\r\n"))
            except OSError as error:
                raise BadSetting(
                    f"the file of the password in {where} cannot be read: {error.strerror or error}",
                    hint="check its path and its permissions",
                ) from None
    raise BadSetting(
        f"password in {where} is not a reference",
        hint='write password = { env = "NAME" } or { file = "path" }',
    )


def check_address(dsn: str, where: str) -> str:
    """The address, if libpq can parse it."""
    try:
        address_parts(dsn)
    except ValueError:
        raise BadSetting(
            f"the address in {where} cannot be parsed", hint="write host=... dbname=..., or postgresql://..."
        ) from None
    return dsn


def _sections(content: Mapping[str, Any], kind: str, file: Path) -> list[tuple[str, Mapping[str, Any]]]:
    sections = content.get(kind, {})
    if not isinstance(sections, dict) or not all(isinstance(values, dict) for values in sections.values()):
        raise BadSetting(f"{kind} in {file} has no name", hint=f"write [{kind}.NAME]")
    return list(sections.items())


def _check_keys(values: Mapping[str, Any], known: set[str], where: str) -> None:
    unknown = sorted(set(values) - known)
    if unknown:
        raise BadSetting(
            f"{where} has the unknown key {unknown[0]}", hint=f"known keys: {', '.join(sorted(known))}"
        )


def _value(values: Mapping[str, Any], key: str, kind: type, default: Any, where: str) -> Any:
    found = values.get(key, default)
    if found is not default and not isinstance(found, kind):
        kinds = {str: "a text", bool: "true or false", list: "a list", int: "a whole number", dict: "a table"}
        raise BadSetting(f"{key} in {where} cannot be {found!r}", hint=f"it must be {kinds[kind]}")
    return found


def _whole(
    values: Mapping[str, Any], key: str, default: int | None, least: int, most: int | None, where: str
) -> int | None:
    found = _value(values, key, int, default, where)
    if found is None:
        return None
    if isinstance(found, bool) or found < least or (most is not None and found > most):
        limits = f"between {least} and {most}" if most is not None else f"at least {least}"
        raise BadSetting(f"{key} in {where} cannot be {found!r}", hint=f"it must be {limits}")
    return int(found)


def _pooler(values: Mapping[str, Any], where: str) -> Pooling | None:
    found = _value(values, "pooler", str, None, where)
    if found is None:
        return None
    try:
        return one_of(Pooling)(found)
    except ValueError as wrong:
        raise BadSetting(f"pooler in {where} cannot be {found!r}", hint=f"it must be {wrong}") from None


def _connections(values: Mapping[str, Any], where: str) -> int | None:
    found = _whole(values, "max_connections", None, 1, None, where)
    if found is not None:
        check_connection_limit(found)
    return found
