"""Has a running sidecar carry out a command, so that nobody waits for another Spark to start."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from pgtrickle.catalog.install import check_may_serve
from pgtrickle.catalog.requests import (
    answer_of,
    askable_tables,
    is_served,
    request_comparison,
    request_preview,
    request_refresh,
)
from pgtrickle.commands.connections import open_installed, stream_table_id
from pgtrickle.model.changes import Preview, preview_from_json
from pgtrickle.model.comparison import ComparisonResult, UncomparedTable, VerifiedTable, require_compared
from pgtrickle.model.error_json import error_from_json
from pgtrickle.model.errors import CommandRefused, NoSidecar, RefreshFailed, UnknownStreamTable
from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import Action, RefreshOutcome, StreamTableId
from pgtrickle.postgres.connection import Connection

FIRST_PAUSE: Final = 0.005
LONGEST_PAUSE: Final = 0.1
ALIVE_SECONDS: Final = 1.0
"""How often to check that a sidecar is still there."""


def refresh_served(dsn: str, name: str) -> RefreshOutcome | None:
    """Ask a running sidecar to refresh a stream table; return None if there is no sidecar.

    The outcome and the errors are those of a refresh in this process. You must own the stream table.
    """
    with open_installed(dsn) as connection:
        table = stream_table_id(connection, name)
        if not is_served(connection):
            _check_can_act(connection)
            return None
        known, _ = _named(connection, table)
        answer = _wait(connection, request_refresh(connection, table), known)
    return RefreshOutcome(
        known,
        Action(answer["action"]),
        answer["rows_inserted"],
        answer["rows_deleted"],
        answer["milliseconds"],
        answer["reason"],
        # a sidecar of an older version does not know them
        read_ms=answer.get("read_ms"),
        compute_ms=answer.get("compute_ms"),
        apply_ms=answer.get("apply_ms"),
    )


def verify_served(dsn: str, name: str | None, seconds: float | None) -> list[VerifiedTable] | None:
    """Ask a running sidecar to compare one or all of your stream tables; return None if none is running."""
    with open_installed(dsn) as connection:
        tables = askable_tables(connection) if name is None else [stream_table_id(connection, name)]
        if not is_served(connection):
            _check_can_act(connection)
            return None
        found: list[ComparisonResult] = []
        for table in tables:
            known, is_loaded = _named(connection, table)
            if is_loaded:
                answer = _wait(connection, request_comparison(connection, table, seconds), known)
                found.append(_comparison(known, answer))
    return require_compared(found)


def preview_served(dsn: str, name: str, seconds: float) -> Preview | None:
    """Ask a running sidecar what the next refresh would do; return None if there is no sidecar.

    You must own the stream table and may read its rows. `seconds` limits how long it may take.
    """
    with open_installed(dsn) as connection:
        table = stream_table_id(connection, name)
        if not is_served(connection):
            _check_can_act(connection)
            return None
        known, _ = _named(connection, table)
        return preview_from_json(known, _wait(connection, request_preview(connection, table, seconds), known))


def _comparison(name: RelationName, answer: Mapping[str, Any]) -> ComparisonResult:
    if "uncompared" in answer:
        return UncomparedTable(name, answer["uncompared"])
    return VerifiedTable(name, answer["rows"], answer["milliseconds"])


def _wait(connection: Connection, request: int, name: RelationName) -> Mapping[str, Any]:
    """The answer to a request; raises its error, or `NoSidecar` if nobody is there to answer any more."""
    pause, checked_at = FIRST_PAUSE, time.monotonic()
    while True:
        answer = answer_of(connection, request)
        if answer is None:
            raise UnknownStreamTable(f"there is no stream table {name} any more")
        if answer.is_answered:
            break
        if time.monotonic() - checked_at > ALIVE_SECONDS:
            checked_at = time.monotonic()
            if not is_served(connection):
                raise NoSidecar(
                    f"the sidecar ended before it answered the request for {name}",
                    hint="run the command again; without a sidecar it does the work itself",
                )
        time.sleep(pause)
        pause = min(pause * 1.5, LONGEST_PAUSE)
    content = answer.content or {}
    if "error" in content:
        raise error_from_json(content["error"])
    if answer.error_message is not None:
        raise RefreshFailed(answer.error_message)
    return content


def _named(connection: Connection, table: StreamTableId) -> tuple[RelationName, bool]:
    """The name of a stream table, and whether it has been loaded."""
    row = connection.execute(
        "select pgt_schema, pgt_name, is_populated from pgtrickle.stream_tables_info where pgt_id = %s",
        (table,),
    ).fetchone()
    if row is None:
        raise UnknownStreamTable("the stream table was dropped")
    return RelationName(row[0], row[1]), row[2]


def _check_can_act(connection: Connection) -> None:
    """Without a sidecar, raise unless the role may do the sidecar's work."""
    try:
        check_may_serve(connection)
    except CommandRefused as refusal:
        raise NoSidecar(
            f"no sidecar serves this database, and {connection.info.user} cannot do its work",
            hint=f"start one with `pgtrickle run`, or {refusal.hint}",
        ) from refusal
