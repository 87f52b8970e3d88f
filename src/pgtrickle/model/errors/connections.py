"""Errors of connections and installations."""

from __future__ import annotations

from pgtrickle.model.errors.commands import BadSetting, Busy
from pgtrickle.model.errors.error import PgTrickleError


class ConnectionFailed(PgTrickleError):
    """The server cannot be reached, refuses the connection, or has closed it.

    Cause: a wrong address or password, a server that is down, or a network that drops connections.
    Remedy: check `--dsn`, or libpq's PGHOST, PGPORT and PGUSER, with `psql`. A sidecar reconnects by itself.
    """

    code, sqlstate, http_status, exit_code = "PGT-C001", "08001", 503, 3


class UnsupportedServer(PgTrickleError):
    """The version of the server is not supported.

    Cause: the server is older than PostgreSQL 14, or newer than this version of pgtrickle knows.
    Remedy: upgrade the server, or pgtrickle.
    """

    code, sqlstate, http_status, exit_code = "PGT-C002", "TC002", 503, 3


class ReadOnlyServer(PgTrickleError):
    """The server does not accept writes.

    Cause: it is a standby, or `default_transaction_read_only` is on for the role or the database.
    Remedy: connect to the primary, or switch that setting off for the role.
    """

    code, sqlstate, http_status, exit_code = "PGT-C003", "25006", 503, 3


class NotInstalled(PgTrickleError):
    """pgtrickle is not installed in this database.

    Cause: it was never installed here, or its schemas were dropped.
    Remedy: `pgtrickle install`, or connect to the right database.
    """

    code, sqlstate, http_status, exit_code = "PGT-C004", "TC004", 409, 3


class NoConnectionFree(Busy):
    """All allowed connections are in use, and none became free in time.

    Cause: more refreshes and Spark tasks run at once than `--max-connections` allows for.
    Remedy: raise `--max-connections`, or lower `--worker-pool-size`.
    """

    code, sqlstate, http_status, exit_code = "PGT-C005", "TC005", 503, 4


class TooFewConnections(BadSetting):
    """The connection limit is too low for a refresh to finish.

    Cause: `--max-connections` is below what one refresh needs.
    Remedy: allow as many as the message says.
    """

    code, sqlstate, http_status, exit_code = "PGT-C006", "TC006", 422, 2


class UnsuitableSetting(PgTrickleError):
    """A setting of PostgreSQL that pgtrickle cannot change makes its work impossible or wrong.

    Cause: for example an encoding that cannot be converted to UTF-8, or `session_replication_role = replica`.
    Remedy: change the setting that the message names.
    """

    code, sqlstate, http_status, exit_code = "PGT-C007", "TC007", 503, 3


class CopiedDatabase(PgTrickleError):
    """The catalog comes from a dump, a clone or an upgrade, and describes another database.

    Cause: the database was restored, cloned, or upgraded with `pg_upgrade`.
    Remedy: `pgtrickle repair` finds every stream table by its name and loads it again.
    """

    code, sqlstate, http_status, exit_code = "PGT-C008", "TC008", 409, 3


class VersionMismatch(NotInstalled):
    """The catalog in the database belongs to another version of pgtrickle.

    Cause: only one of the two was upgraded: the program or the database.
    Remedy: `pgtrickle install` if the catalog is older, an upgrade of pgtrickle if it is newer.
    """

    code, sqlstate, http_status, exit_code = "PGT-C010", "TC010", 409, 3


class NoSidecar(PgTrickleError):
    """No sidecar serves the database, and the command cannot do without one.

    Cause: no `pgtrickle run` is running for this database, or it has stopped answering.
    Remedy: start one with `pgtrickle run`; `pgtrickle sidecars` shows which were seen last.
    """

    code, sqlstate, http_status, exit_code = "PGT-C009", "57P03", 503, 3


class AttachedFailed(PgTrickleError):
    """A table of another database cannot be read.

    Cause: the database does not answer, the sidecar has no address for it, its table was dropped or altered,
    or the role of the sidecar lacks a right there.
    Remedy: settle what the message says; the stream tables that read it are refreshed from then on.
    """

    code, sqlstate, http_status, exit_code = "PGT-C012", "TC012", 503, 3


class BrokerFull(PgTrickleError):
    """The databases of a sidecar follow more tables of other databases than its broker may serve.

    Cause: there are more pairs of a database and a table that it follows than `broker_capacity`.
    Remedy: raise `broker_capacity`, or let another sidecar serve some of the databases.
    """

    code, sqlstate, http_status, exit_code = "PGT-C013", "TC013", 503, 3


class TooManyDatabases(PgTrickleError):
    """A sidecar is asked to serve more databases than it may.

    Cause: `--dsn`, the configuration file or `--discover` lead to more databases than `max_databases`.
    Remedy: raise `--max-databases`, or let another sidecar serve some of them.
    """

    code, sqlstate, http_status, exit_code = "PGT-C011", "TC011", 503, 3
