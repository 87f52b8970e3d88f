"""Examines an installation and says what is wrong with it, and what to do. It changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from pgtrickle.catalog.install import check_installed, may_serve
from pgtrickle.commands.checkup import host, installation, publications, server, speed, tables
from pgtrickle.commands.checkup.patient import Check, Patient
from pgtrickle.commands.status import read_sidecars
from pgtrickle.model.errors import PgTrickleError
from pgtrickle.model.finding import Finding, failure, ok, unchecked
from pgtrickle.model.settings import Settings
from pgtrickle.postgres.connection import DatabaseError, connect
from pgtrickle.postgres.pinned import PinnedConnection

OF_SERVER: Final[tuple[Check, ...]] = (
    server.check_version,
    server.check_writable,
    server.check_pooler,
    server.check_notify,
    installation.check_catalog,
    installation.check_copy,
    installation.check_role,
    server.check_connections,
    server.check_timeouts,
    installation.check_sidecars,
    installation.check_temporary_files,
)
OF_TABLES: Final[tuple[Check, ...]] = (
    tables.check_states,
    tables.check_rights,
    tables.check_triggers,
    tables.check_guards,
    server.check_replication,
    publications.check_publications,
    tables.check_buffers,
    speed.check_lookups,
    speed.check_statistics,
    speed.check_transactions,
)
"""These look up tables by the ids in the catalog, which mean other tables in a copy."""


def doctor(settings: Settings, *, start_spark: bool = False) -> list[Finding]:
    """Examine this host and the database. With `start_spark`, start a Spark here and compute with it."""
    return list(examine(settings, start_spark=start_spark))


def examine(settings: Settings, *, start_spark: bool = False) -> Iterator[Finding]:
    """The same one by one, as they are found."""
    yield from host.check_python()
    yield from host.check_java(settings)
    yield from host.check_spark(settings, start_spark)
    yield from host.check_room()
    yield from _check_database(settings)


def _check_database(settings: Settings) -> Iterator[Finding]:
    try:
        connection = connect(settings.dsn, autocommit=True, application_name="pgtrickle doctor")
    except PgTrickleError as error:
        yield failure("connection", error.message, error.hint or "check the address")
        yield unchecked("database", "nothing about the database was checked: there is no connection")
        return
    with connection:
        info = connection.info
        yield ok("connection", f"{info.dbname} at {info.host}:{info.port}, as {info.user}")
        try:
            check_installed(connection)
        except PgTrickleError as error:
            yield failure("catalog", error.message, error.hint or "`pgtrickle install`")
            yield unchecked("database", "the rest was not checked: it needs the catalog")
            return
        patient = _patient(connection, settings)
        is_copy = connection.execute("select pgtrickle.is_copy()").fetchone() == (True,)
        for check in OF_SERVER if is_copy else (*OF_SERVER, *OF_TABLES):
            yield from _carry_out(check, patient)
            if connection.closed:
                yield failure("connection", "the connection was lost during the checks", "try again")
                return
        if is_copy:
            yield unchecked("stream tables", "not checked in a copy before its repair", "`pgtrickle repair`")


def _patient(connection: PinnedConnection, settings: Settings) -> Patient:
    row = connection.execute("select quote_ident(pg_get_userbyid(pgtrickle.sidecar_role()))").fetchone()
    assert row is not None
    alive = tuple(sidecar for sidecar in read_sidecars(connection) if sidecar.is_alive)
    return Patient(connection, settings, row[0], may_serve(connection), alive)


def _carry_out(check: Check, patient: Patient) -> Iterable[Finding]:
    """The findings of one check; that it could not be made is a finding too."""
    found: list[Finding] = []
    try:
        found.extend(check(patient))
    except (PgTrickleError, DatabaseError) as error:
        name = check.__name__.removeprefix("check_").replace("_", " ")
        found.append(unchecked(name, f"the check failed: {str(error).strip().partition(chr(10))[0]}"))
    return found
