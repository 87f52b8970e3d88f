"""Checks of the catalog, of the sidecar's role and of the sidecars."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pgtrickle import __version__
from pgtrickle.catalog.identity import VERSION, installation
from pgtrickle.commands.checkup.host import in_place
from pgtrickle.commands.checkup.patient import Patient
from pgtrickle.model.finding import Finding, failure, ok, unchecked, warning

SLOW_POLL_MILLISECONDS: Final = 500.0
_WITH_PARAMETER_GRANTS: Final = 150000


def check_catalog(patient: Patient) -> Iterator[Finding]:
    """The version of the catalog, which is that of this package, or there would be no patient."""
    yield ok("catalog", f"version {VERSION}, the one that pgtrickle {__version__} needs")


def check_copy(patient: Patient) -> Iterator[Finding]:
    """Whether the database is a copy, in which nothing is refreshed."""
    if installation(patient.connection).is_copy:
        yield failure(
            "copy",
            "this database is a copy (a restore, a clone or an upgrade), and nothing is refreshed in it",
            "select * from pgtrickle.repair()",
        )
    else:
        yield ok("copy", "this is the database that pgtrickle was installed in, not a copy")


def check_role(patient: Patient) -> Iterator[Finding]:
    """The sidecar's role, and who asks."""
    (is_superuser, is_login, user) = patient.row(
        "select r.rolsuper, r.rolcanlogin, quote_ident(current_user) from pg_roles r"
        " where r.oid = pgtrickle.sidecar_role()"
    )
    if is_superuser:
        yield warning(
            "role",
            f"the sidecar's role {patient.role} is a superuser, and it evaluates the queries of others",
            "install pgtrickle as a role of its own: `pgtrickle install --print-grants ROLE`",
        )
    elif not is_login:
        yield warning(
            "role",
            f"the sidecar's role {patient.role} cannot log in; a member of it has to run the sidecar",
            f"alter role {patient.role} login",
        )
    else:
        yield ok("role", f"the sidecar runs as {patient.role}, which is not a superuser")
    if not patient.is_sidecar_role:
        yield unchecked(
            "role",
            f"{user} does not have the rights of {patient.role}, so some checks are left out",
            f"connect as {patient.role}",
        )


def check_sidecars(patient: Patient) -> Iterator[Finding]:
    """Whether somebody serves the database, and how they are."""
    if not patient.sidecars:
        (seen,) = patient.row("select pgtrickle_internal.waits_for_sidecar()")
        yield failure("sidecars", str(seen), "`pgtrickle run`")
        return
    for sidecar in patient.sidecars:
        where = f"{sidecar.host}, process {sidecar.process}"
        if sidecar.version != __version__:
            yield warning(
                "sidecars",
                f"{where} is pgtrickle {sidecar.version}, this is {__version__}",
                "install the same version on all hosts",
            )
        if (waits := sidecar.vitals.get("waits_for_spark")) is not None:
            yield failure(
                "spark", f"{where} is waiting for Spark: {waits}", "look at the log of that sidecar"
            )
        elif (said := sidecar.vitals.get("in_place")) is not None:
            yield in_place(where, str(said))
        else:
            yield unchecked("in place", f"{where} has not started Spark yet")
        tick = sidecar.tick_milliseconds or 0
        if tick > SLOW_POLL_MILLISECONDS:
            yield warning(
                "sidecars",
                f"{where} takes {tick:.0f} ms for a poll",
                "check the network to the server, its load, and how many stream tables there are",
            )
    count = len(patient.sidecars)
    yield ok("sidecars", "one serves this database" if count == 1 else f"{count} serve this database")


def check_temporary_files(patient: Patient) -> Iterator[Finding]:
    """Whether a refresh can fill the disk of the server with temporary files."""
    role = patient.role
    grant = f"grant set on parameter temp_file_limit to {role}"
    if patient.connection.info.server_version < _WITH_PARAMETER_GRANTS or patient.connection.is_pooled:
        grant = f"alter role {role} set temp_file_limit = '32GB'"
    unlimited = [one for one in patient.sidecars if "not limited" in str(one.vitals.get("temp_files"))]
    if unlimited:
        yield warning("temporary files", "refreshes can write any amount of them on the server", grant)
        return
    known = [one for one in patient.sidecars if one.vitals.get("temp_files")]
    if known:
        yield ok("temporary files", f"of refreshes: {known[0].vitals['temp_files']}")
        return
    if not patient.is_sidecar_role:
        yield unchecked("temporary files", f"only {role} or a running sidecar can see the limit")
        return
    allowed = (
        "has_parameter_privilege('temp_file_limit', 'SET')"
        if patient.connection.info.server_version >= _WITH_PARAMETER_GRANTS
        else "(select rolsuper from pg_roles where rolname = current_user)"
    )
    (is_limited, may_set) = patient.row(
        f"select setting::bigint >= 0, {allowed} from pg_settings where name = 'temp_file_limit'"  # noqa: S608
    )
    if is_limited:
        yield ok("temporary files", "the server limits those of refreshes")
    elif may_set and not patient.connection.is_pooled:
        yield ok("temporary files", "a sidecar can limit those of refreshes")
    else:
        yield warning("temporary files", "refreshes can write any amount of them on the server", grant)
