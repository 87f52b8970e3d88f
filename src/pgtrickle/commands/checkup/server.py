"""Checks of the PostgreSQL server and of the way to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from uuid import uuid4

from pgtrickle.commands.checkup.patient import Patient
from pgtrickle.model.errors import PgTrickleError
from pgtrickle.model.finding import Finding, failure, ok, unchecked, warning
from pgtrickle.model.settings import LISTEN_DSN
from pgtrickle.postgres.connection import connect
from pgtrickle.postgres.pool import LEAST

TESTED: Final = (15, 18)
_NOTIFY_SECONDS: Final = 3.0
_TIMEOUTS: Final = ("statement_timeout", "lock_timeout", "transaction_timeout")
_SHORT_MILLISECONDS: Final = 600_000


def check_version(patient: Patient) -> Iterator[Finding]:
    """The version of the server."""
    number = patient.connection.info.server_version
    name, major = f"PostgreSQL {number // 10000}.{number % 10000}", number // 10000
    if major in TESTED:
        yield ok("server", name)
    else:
        yield ok("server", f"{name}: accepted; the tests of pgtrickle run on {TESTED[0]} and {TESTED[1]}")


def check_writable(patient: Patient) -> Iterator[Finding]:
    """Whether refreshes can write here."""
    is_standby, is_read_only = patient.row(
        "select pg_is_in_recovery(), current_setting('transaction_read_only') = 'on'"
    )
    if is_standby:
        yield failure("server", "this server is a standby", "connect to the primary")
    elif is_read_only:
        yield failure(
            "server",
            "transactions of this database or role are read-only",
            f"alter role {patient.role} set default_transaction_read_only = off",
        )
    else:
        yield ok("server", "it accepts writes")


def check_pooler(patient: Patient) -> Iterator[Finding]:
    """Whether there is a pooler in between. Through one, the sidecar learns of changes by its polls only."""
    if not patient.connection.is_pooled:
        yield ok("pooler", "none was seen: this connection goes to the server directly")
    elif patient.settings.listen_dsn:
        yield ok("pooler", "this connection goes through a pooler; PGTRICKLE_LISTEN_DSN has another address")
    else:
        yield warning(
            "pooler",
            "this connection goes through a pooler in transaction mode, so a write does not wake an idle"
            " sidecar: it waits for the next poll, up to 0.1 s",
            "set PGTRICKLE_LISTEN_DSN to the address of the server itself, if that matters",
        )


def check_notify(patient: Patient) -> Iterator[Finding]:
    """LISTEN and NOTIFY, by sending a notification to ourselves, and the room that is left for others."""
    (usage,) = patient.row("select pg_notification_queue_usage()")
    if usage > 0.5:
        yield warning(
            "notify",
            f"the notification queue of the server is {usage:.0%} full: some session listens and does not"
            " end its transaction",
            "select pid from pg_stat_activity where state = 'idle in transaction' order by xact_start",
        )
    address = patient.settings.listen_dsn or patient.settings.dsn
    channel = f"pgtrickle_doctor_{uuid4().hex}"
    try:
        with connect(address, autocommit=True) as connection:
            if connection.is_pooled:
                yield unchecked("notify", "LISTEN does not work through a pooler, so it was not tried")
                return
            connection.execute(f"listen {channel}")
            connection.execute("select pg_notify(%s, '')", (channel,))
            found = list(connection.notifies(timeout=_NOTIFY_SECONDS, stop_after=1))
    except PgTrickleError as error:
        yield failure(
            "notify", f"{LISTEN_DSN.variable}: {error.message}", "correct the address or remove the setting"
        )
        return
    if found:
        yield ok("notify", "a test notification has arrived")
    else:
        yield warning(
            "notify",
            f"a notification did not arrive within {_NOTIFY_SECONDS:.0f} s",
            "check what is between here and the server; alerts and wakeups need notifications",
        )


def check_connections(patient: Patient) -> Iterator[Finding]:
    """Whether the server has room for the connections of a sidecar."""
    if patient.connection.is_pooled:
        yield unchecked("connections", "the pooler decides how many there are; they were not counted")
        return
    ((free, role_limit, database_limit),) = patient.rows("connections")
    wanted = patient.settings.max_connections
    limits = [limit for limit in (role_limit, database_limit) if limit is not None and limit >= 0]
    if limits and min(limits) < wanted:
        yield failure(
            "connections",
            f"at most {min(limits)} connections are allowed to {patient.role} here, and a sidecar opens up"
            f" to {wanted}",
            f"alter role {patient.role} connection limit -1, or lower PGTRICKLE_MAX_CONNECTIONS"
            f" (at least {LEAST})",
        )
    elif not patient.sidecars and free < wanted:
        yield warning(
            "connections",
            f"the server has {free} free connections, and a sidecar opens up to {wanted}",
            "alter system set max_connections = …, or lower PGTRICKLE_MAX_CONNECTIONS"
            f" (at least {LEAST}), or use a pooler",
        )
    else:
        yield ok("connections", f"{free} are free; a sidecar opens up to {wanted}")


def check_timeouts(patient: Patient) -> Iterator[Finding]:
    """Settings of the sidecar's role that would stop it."""
    if not patient.is_sidecar_role:
        yield unchecked("settings", f"only {patient.role} can see its settings: connect as that role")
        return
    if patient.connection.replication_role != "origin":
        yield failure(
            "settings",
            f"session_replication_role is {patient.connection.replication_role}: triggers that capture"
            " changes would not fire",
            f"alter role {patient.role} reset session_replication_role",
        )
    found = patient.connection.execute(
        "select name, reset_val::bigint, unit from pg_settings where name = any (%s)", (list(_TIMEOUTS),)
    ).fetchall()
    short = [(name, value) for name, value, _ in found if 0 < value < _SHORT_MILLISECONDS]
    for name, value in short:
        yield warning(
            "settings",
            f"{name} is {value / 1000:g} s for {patient.role}, so longer refreshes and loads fail",
            f"alter role {patient.role} set {name} = 0",
        )
    if not short and patient.connection.replication_role == "origin":
        yield ok("settings", "no timeout of the server cuts refreshes short, and triggers fire")


def check_replication(patient: Patient) -> Iterator[Finding]:
    """What replication means for capture. Changes are captured by triggers, whatever wal_level is."""
    (level,) = patient.row("select current_setting('wal_level')")
    yield ok("replication", f"wal_level is {level}; capture by triggers works with any")
    if not patient.is_sidecar_role:
        yield unchecked(
            "replication", f"subscriptions of sources were not checked: connect as {patient.role}"
        )
        return
    found = patient.rows("unreplicated")
    for source, message, remedy in found:
        yield failure("replication", f"{source} receives rows from a subscription: {message}", remedy)
    if not found:
        yield ok("replication", "no source receives rows that its triggers would not see")
