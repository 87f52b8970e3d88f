"""Limits the temporary files of our statements, if the role can set a limit.

Only superusers can set `temp_file_limit`, and since PostgreSQL 15 roles with `GRANT SET ON PARAMETER`.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from pgtrickle.postgres.connection import Connection

_WITH_GRANTS: Final = 150000


class TempFiles(Enum):
    """What limits the temporary files of a connection: pgtrickle, the server or role, or nothing."""

    LIMITED = "limited by pgtrickle"
    LIMITED_BEFORE = "limited by the server"
    UNLIMITED = "not limited: the role may not set temp_file_limit"


def limit_temp_files(connection: Connection, limit: str) -> TempFiles:
    """Limit the temporary files of a connection while it is open, unless a lower limit applies already."""
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
    may_set, is_limited = row
    if may_set and not is_limited:
        connection.execute("select pg_catalog.set_config('temp_file_limit', %s, false)", (limit,))
    # a rollback would undo the setting
    connection.commit()
    if is_limited:
        return TempFiles.LIMITED_BEFORE
    return TempFiles.LIMITED if may_set else TempFiles.UNLIMITED
