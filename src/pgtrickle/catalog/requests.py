"""Requests of users to a sidecar, on both sides: asking and waiting, finding and answering."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from pgtrickle.model.error_json import error_to_json
from pgtrickle.model.errors import PgTrickleError
from pgtrickle.model.hints import Interface
from pgtrickle.model.stream_table import StreamTableId
from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.rows import rows_as
from pgtrickle.postgres.statements import load


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a request. `content` is the result or the error, once it is answered."""

    is_answered: bool
    content: Mapping[str, Any] | None
    error_message: str | None


@dataclass(frozen=True, slots=True)
class UserRequest:
    """A request for a comparison or a preview of a stream table; `seconds` is its limit, if it has one."""

    id: int
    table: StreamTableId
    seconds: float | None


def is_served(connection: Connection) -> bool:
    """Whether a sidecar serves the database."""
    row = connection.execute("select pgtrickle_internal.is_served()").fetchone()
    return bool(row and row[0])


def request_refresh(connection: Connection, table: StreamTableId) -> int:
    """Ask for a refresh; returns the id of the request. Raises unless the role may ask."""
    return _request(connection, "select pgtrickle_internal.request_refresh(%s)", (table,))


def request_comparison(connection: Connection, table: StreamTableId, seconds: float | None) -> int:
    """Ask for a comparison; returns the id of the request. Raises unless the role may ask."""
    return _request(connection, "select pgtrickle_internal.request_comparison(%s, %s)", (table, seconds))


def request_preview(connection: Connection, table: StreamTableId, seconds: float) -> int:
    """Ask for a preview; returns the id of the request. Raises unless the role may ask."""
    return _request(connection, "select pgtrickle_internal.request_preview(%s, %s)", (table, seconds))


def answer_of(connection: Connection, request: int) -> Answer | None:
    """What came of a request so far; None if it is gone, because its stream table was dropped."""
    row = connection.execute(
        "select is_answered, answer, error_message from pgtrickle_internal.result_of(%s)", (request,)
    ).fetchone()
    return Answer(*row) if row else None


def askable_tables(connection: Connection) -> list[StreamTableId]:
    """The loaded stream tables that the role may ask about, oldest first."""
    rows = connection.execute(
        "select i.pgt_id from pgtrickle.stream_tables_info i"
        " where i.is_populated and pgtrickle_internal.may_ask(i.pgt_id) order by i.pgt_id"
    )
    return [StreamTableId(table) for (table,) in rows]


def answer_refused(connection: Connection, tables: Sequence[StreamTableId], error: PgTrickleError) -> None:
    """Answer the waiting requests to refresh these tables with an error."""
    connection.execute(
        "update pgtrickle.pgt_refresh_requests"
        " set answered_at = clock_timestamp(), error_message = %s, answer = %s::jsonb"
        " where pgt_id = any (%s) and kind = 'refresh' and answered_at is null",
        (error.text_for(Interface.SQL), json.dumps({"error": error_to_json(error)}), list(tables)),
    )


def take_request(connection: Connection, kind: str, sidecar: UUID) -> UserRequest | None:
    """Take the oldest request of this kind that no living sidecar has taken; the caller commits."""
    statement = load("pgtrickle.catalog", "sql/queries/take_request.sql")
    found = rows_as(UserRequest, connection.execute(statement, {"kind": kind, "sidecar": sidecar}))
    return found[0] if found else None


def note_waiting_previews(connection: Connection) -> None:
    """Make requests of what sessions ask for by a lock, inside their transactions; the caller commits."""
    connection.execute(load("pgtrickle.catalog", "sql/queries/note_previews.sql"))


def give_back_request(connection: Connection, request: int) -> None:
    """Let any sidecar take a request again."""
    connection.execute(
        "update pgtrickle.pgt_refresh_requests set taken_by = null where request_id = %s", (request,)
    )


def answer_request(connection: Connection, request: int, content: Mapping[str, Any]) -> None:
    """Answer a request for a comparison or a preview."""
    connection.execute(
        "update pgtrickle.pgt_refresh_requests set answered_at = clock_timestamp(), answer = %s::jsonb,"
        " error_message = %s where request_id = %s",
        (json.dumps(content), content.get("error", {}).get("message"), request),
    )


def _request(connection: Connection, statement: str, parameters: tuple[object, ...]) -> int:
    row = connection.execute(statement, parameters).fetchone()
    assert row is not None
    return int(row[0])
