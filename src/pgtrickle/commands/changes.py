"""Reads the rows that refreshes inserted into a stream table and deleted from it, and follows new ones."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from typing import Any, Final, Literal

from pgtrickle.catalog.alerts import CHANNELS
from pgtrickle.commands.connections import open_installed, stream_table_id
from pgtrickle.model.changes import Change, ChangeKind, row_from_json
from pgtrickle.model.errors import BadOption, UnknownStreamTable
from pgtrickle.model.stream_table import StreamTableId
from pgtrickle.postgres.connection import Connection, DatabaseError, sql

PAGE: Final = 1000
"""How many rows are read at a time."""
POLL_SECONDS: Final = 1.0
"""How often to look for new changes if no notification comes, as through a pooler."""
STOP_SECONDS: Final = 0.2
"""How often to check whether to stop."""

Since = int | Literal["now"] | None
"""A point; None for everything that is kept; `now` for what comes from now on."""


def changes(
    dsn: str,
    name: str,
    since: Since = None,
    *,
    follow: bool = False,
    stop: threading.Event | None = None,
) -> Iterator[Change]:
    """The changes of a stream table after a point, in order, each exactly once.

    With `follow`, wait for more until `stop` is set. The changes must be kept, and the role needs SELECT on
    the stream table. Errors are raised at once, not when the first change is read.
    """
    if isinstance(since, str) and since != "now":
        raise BadOption(f"{since!r} is not a point", hint="give the number of a point, or now")
    with open_installed(dsn) as connection:
        table = stream_table_id(connection, name)
        start = _newest_point(connection, table) if since == "now" else since
        _page(connection, table, start, 0)
    return _changes(dsn, table, name, start, stop or threading.Event(), is_following=follow)


def change_point(dsn: str, name: str) -> int:
    """The newest point in the changes of a stream table."""
    with open_installed(dsn) as connection:
        return _newest_point(connection, stream_table_id(connection, name))


def _changes(
    dsn: str,
    table: StreamTableId,
    name: str,
    since: int | None,
    stop: threading.Event,
    *,
    is_following: bool,
) -> Iterator[Change]:
    with open_installed(dsn) as connection:
        if is_following and not connection.is_pooled:
            connection.execute(sql.SQL("listen {}").format(sql.Identifier(CHANNELS[-1])))
        while not stop.is_set():
            try:
                page = _page(connection, table, since, PAGE)
            except DatabaseError:
                _check_exists(connection, table, name)
                raise
            for change in page:
                yield change
                since = change.point
            if len(page) < PAGE:
                if not is_following:
                    return
                _wait(connection, table, stop)


def _page(connection: Connection, table: StreamTableId, since: int | None, most: int) -> list[Change]:
    rows = connection.execute(
        "select point, batch, change, count, data::text, row_text, refreshed_at, is_last, reason"
        " from pgtrickle_internal.read_changes(%s, %s, %s)",
        (table, since, most),
    ).fetchall()
    return [_change(row) for row in rows]


def _change(row: tuple[Any, ...]) -> Change:
    point, batch, change, count, data, *rest = row
    row_data = None if data is None else row_from_json(data)
    return Change(point, batch, ChangeKind(change), count, row_data, *rest)


def _newest_point(connection: Connection, table: StreamTableId) -> int:
    row = connection.execute(
        "select pgtrickle_internal.check_may_read_changes(%(id)s),"
        " pgtrickle_internal.check_kept(%(id)s, null), pgtrickle_internal.newest_point(%(id)s)",
        {"id": table},
    ).fetchone()
    assert row is not None
    return int(row[2])


def _check_exists(connection: Connection, table: StreamTableId, name: str) -> None:
    row = connection.execute(
        "select from pgtrickle.stream_tables_info where pgt_id = %s", (table,)
    ).fetchone()
    if row is None:
        raise UnknownStreamTable(f"stream table {name} was dropped")


def _wait(connection: Connection, table: StreamTableId, stop: threading.Event) -> None:
    """Wait until the stream table was refreshed, as far as notifications tell, or for the time of a poll."""
    until = time.monotonic() + POLL_SECONDS
    while (left := until - time.monotonic()) > 0 and not stop.is_set():
        for notice in connection.notifies(timeout=min(left, STOP_SECONDS), stop_after=1):
            if json.loads(notice.payload).get("pgt_id") == table:
                return
