"""Writes the SQL functions of pgtrickle: the list of their files, in the order in which they are created."""

from __future__ import annotations

from typing import Any, Final, cast

from pgtrickle import __version__
from pgtrickle.postgres.connection import Connection, sql
from pgtrickle.postgres.statements import load

FUNCTIONS: Final = (
    ("pgtrickle.catalog", "identity.sql"),
    ("pgtrickle.catalog", "names.sql"),
    ("pgtrickle.catalog", "cron.sql"),
    ("pgtrickle.catalog", "options.sql"),
    ("pgtrickle.catalog", "version.sql"),
    ("pgtrickle.catalog", "alerts.sql"),
    ("pgtrickle.catalog", "values.sql"),
    ("pgtrickle.catalog", "guard.sql"),
    ("pgtrickle.catalog", "closure.sql"),
    ("pgtrickle.catalog", "analyse.sql"),
    ("pgtrickle.catalog", "keys.sql"),
    ("pgtrickle.catalog", "object_names.sql"),
    ("pgtrickle.catalog", "check_relations.sql"),
    ("pgtrickle.catalog", "missing_grants.sql"),
    ("pgtrickle.catalog", "fingerprints.sql"),
    ("pgtrickle.capture", "touched.sql"),
    ("pgtrickle.capture", "parts.sql"),
    ("pgtrickle.capture", "buffers.sql"),
    ("pgtrickle.capture", "wal.sql"),
    ("pgtrickle.capture", "hand_over.sql"),
    ("pgtrickle.capture", "windows.sql"),
    ("pgtrickle.capture", "triggers.sql"),
    ("pgtrickle.capture", "waiting.sql"),
    ("pgtrickle.capture", "rotate.sql"),
    ("pgtrickle.capture", "copies.sql"),
    ("pgtrickle.capture", "attached.sql"),
    ("pgtrickle.capture", "decoded.sql"),
    ("pgtrickle.catalog", "generation.sql"),
    ("pgtrickle.catalog", "search_path.sql"),
    ("pgtrickle.catalog", "ground_versions.sql"),
    ("pgtrickle.capture", "origins.sql"),
    ("pgtrickle.catalog", "ground_content.sql"),
    ("pgtrickle.catalog", "ground_rights.sql"),
    ("pgtrickle.catalog", "ground.sql"),
    ("pgtrickle.catalog", "ground_poll.sql"),
    ("pgtrickle.catalog", "feeds.sql"),
    ("pgtrickle.catalog", "changes.sql"),
    ("pgtrickle.catalog", "register.sql"),
    ("pgtrickle.catalog", "reanalyse.sql"),
    ("pgtrickle.catalog", "storage.sql"),
    ("pgtrickle.catalog", "attach.sql"),
    ("pgtrickle.catalog", "create.sql"),
    ("pgtrickle.catalog", "bulk.sql"),
    ("pgtrickle.catalog", "alter.sql"),
    ("pgtrickle.catalog", "carried.sql"),
    ("pgtrickle.catalog", "carried_definitions.sql"),
    ("pgtrickle.catalog", "replacement.sql"),
    ("pgtrickle.catalog", "reshape.sql"),
    ("pgtrickle.catalog", "adopt.sql"),
    ("pgtrickle.catalog", "drop.sql"),
    ("pgtrickle.catalog", "trust.sql"),
    ("pgtrickle.catalog", "rights.sql"),
    ("pgtrickle.catalog", "freshness.sql"),
    ("pgtrickle.catalog", "pending.sql"),
    ("pgtrickle.catalog", "inspection.sql"),
    ("pgtrickle.catalog", "gates.sql"),
    ("pgtrickle.catalog", "drain.sql"),
    ("pgtrickle.catalog", "requests.sql"),
    ("pgtrickle.catalog", "refresh.sql"),
    ("pgtrickle.catalog", "verify.sql"),
    ("pgtrickle.catalog", "preview.sql"),
    ("pgtrickle.catalog", "definitions.sql"),
    ("pgtrickle.catalog", "repair.sql"),
    ("pgtrickle.catalog", "sidecars.sql"),
    ("pgtrickle.catalog", "caches.sql"),
    ("pgtrickle.catalog", "monitoring.sql"),
    ("pgtrickle.catalog", "capture_health.sql"),
    ("pgtrickle.catalog", "health.sql"),
    ("pgtrickle.catalog", "dependency_tree.sql"),
    ("pgtrickle.catalog", "explain.sql"),
    ("pgtrickle.catalog", "validate.sql"),
    ("pgtrickle.catalog", "replica_identity.sql"),
    ("pgtrickle.catalog", "publications.sql"),
    ("pgtrickle.catalog", "subscribers.sql"),
    ("pgtrickle.catalog", "subscriptions.sql"),
    ("pgtrickle.catalog", "grants.sql"),
)
"""Replaced by every installation, in this order, in the transaction of the migrations."""

_SAFE_PATH: Final = "set search_path = pg_catalog, pg_temp"
_PINNED: Final = f"{_SAFE_PATH} set standard_conforming_strings = on"
"""The caller's session parses the body of a function, so a backslash in it must mean a backslash."""


def write_functions(connection: Connection) -> None:
    """Create or replace every function, and drop those that only an older version has."""
    # functions call each other in both directions
    connection.execute("set local check_function_bodies = off")
    before = _routines(connection)
    for package, name in FUNCTIONS:
        if name == "grants.sql":
            _drop_outdated(connection, before)
        text = load(package, f"sql/functions/{name}").replace(_SAFE_PATH, _PINNED)
        if name == "version.sql":
            version = sql.Literal(__version__)
            connection.execute(sql.SQL(text).format(version=version))
        else:
            connection.execute(text)


def _routines(connection: Connection) -> dict[str, str]:
    """Every routine of pgtrickle as DROP names it, with the version of its row in pg_proc."""
    rows = connection.execute(
        "select case p.prokind when 'p' then 'procedure ' else 'function ' end || p.oid::regprocedure,"
        " p.xmin::text || p.ctid::text from pg_proc p where p.pronamespace in ('pgtrickle'::regnamespace,"
        " 'pgtrickle_internal'::regnamespace)"
    )
    return dict(rows.fetchall())


def _drop_outdated(connection: Connection, before: dict[str, str]) -> None:
    """Drop routines that only an older version has, such as a function with fewer arguments."""
    for routine, version in _routines(connection).items():
        if before.get(routine) == version:
            connection.execute(sql.SQL("drop {}").format(sql.SQL(cast(Any, routine))))
