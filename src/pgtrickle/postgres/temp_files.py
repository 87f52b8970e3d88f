"""A bound on the temporary files of our statements, where the role may set one.

`temp_file_limit` belongs to superusers, and since PostgreSQL 15 to roles with `GRANT SET ON PARAMETER`.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from pgtrickle.postgres.connection import Connection

_WITH_GRANTS: Final = 150000


class TempFiles(Enum):
    """What bounds the temporary files of a connection: we, a setting of the server or role, or nothing."""

    LIMITED = "limited by pgtrickle"
    LIMITED_BEFORE = "limited by the server"
    UNLIMITED = "not limited: the role may not set temp_file_limit"


def limit_temp_files(connection: Connection, limit: str) -> TempFiles:
    """Bound the temporary files of a connection for as long as it is open, unless they are bounded closer."""
    allowed = (
        "has_parameter_privilege('temp_file_limit', 'SET')"
        if connection.info.server_version >= _WITH_GRANTS
        else "(select rolsuper from pg_catalog.pg_roles where rolname = current_user)"
    )
    row = connection.execute(
        f"select {allowed},"  # noqa: S608 (one of two texts of ours)
        " setting::bigint between 0 and pg_catalog.pg_size_bytes(%(limit)s) / 1024"
        " from pg_catalog.pg_settings where name = 'temp_file_limit'",
        {"limit": limit},
    ).fetchone()
    assert row is not None
    may_set, is_bounded = row
    if may_set and not is_bounded:
        connection.execute("select pg_catalog.set_config('temp_file_limit', %s, false)", (limit,))
    # what is set in a transaction that is rolled back is forgotten
    connection.commit()
    if is_bounded:
        return TempFiles.LIMITED_BEFORE
    return TempFiles.LIMITED if may_set else TempFiles.UNLIMITED
