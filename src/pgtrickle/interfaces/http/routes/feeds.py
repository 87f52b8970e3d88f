"""Changes of the rows of a stream table: what the next refresh would do, and what refreshes did."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse

from pgtrickle.commands.changes import Since
from pgtrickle.commands.overview import table_overview
from pgtrickle.interfaces.http import models
from pgtrickle.interfaces.http.api_router import api_router
from pgtrickle.interfaces.http.change_rows import change_values, preview_values
from pgtrickle.interfaces.http.context import Context, caller_of
from pgtrickle.interfaces.http.event_hub import HEARTBEAT_SECONDS, Listener
from pgtrickle.interfaces.http.path_names import SqlName
from pgtrickle.interfaces.http.table_row import json_text
from pgtrickle.model.errors import BadRequest, PgTrickleError

Point = Annotated[
    str | None,
    Query(pattern=r"^(now|[0-9]{1,18})$", description="A point, or now; by default all that is kept."),
]
RowLimit = Annotated[int, Query(ge=1, le=1000, description="How many rows at most.")]
Timeout = Annotated[float, Query(gt=0, le=300, description="How many seconds it may take.")]
_POINT: Final = re.compile("[0-9]{1,18}")
POLL_SECONDS: Final = 2.0
"""How often to look for changes if no event tells of a refresh."""
_STREAM: Final = {"content": {"text/event-stream": {"schema": {"type": "string"}}}}


def router(context: Context) -> APIRouter:
    """The routes."""
    routes = api_router("changes")
    dsn = context.dsn

    @routes.get("/tables/{name}/preview", response_model=models.Preview)
    async def preview(name: SqlName, limit: RowLimit = 50, timeout: Timeout = 30) -> Any:
        """What the next refresh would change, without changing it. A sidecar tries it out."""
        return await context.waits.run(preview_values, dsn, name, limit, timeout)

    @routes.get("/tables/{name}/changes", response_model=models.Changes)
    async def changes(name: SqlName, since: Point = None, limit: RowLimit = 500) -> Any:
        """The rows that refreshes inserted and deleted after a point, in order, each exactly once.

        The stream table must keep its changes.
        """
        return await context.reads.run(change_values, dsn, name, _point(since), limit)

    @routes.get("/tables/{name}/changes/stream", response_class=StreamingResponse, responses={200: _STREAM})
    async def stream(name: SqlName, request: Request, since: Point = None) -> StreamingResponse:
        """The same as server-sent events, as refreshes commit: `changes`, one for each part of a refresh.

        The id of an event is a point, so `Last-Event-ID` continues after a lost connection.
        """
        last_id = request.headers.get("last-event-id")
        if last_id is not None and not _POINT.fullmatch(last_id):
            raise BadRequest("Last-Event-ID is not a point", hint="send the id of the last event")
        start = _point(last_id or since or "now")
        known = str((await context.reads.run(table_overview, dsn, name)).status.name)
        first = await context.reads.run(change_values, dsn, known, start, 500)
        listening = context.hub.listening(frozenset({known}), None)
        listener, session = listening.__enter__(), caller_of(request).session

        async def events() -> AsyncIterator[str]:
            found, quiet = first, 0.0
            try:
                while not listener.is_closed and (session is None or context.gate.sessions.is_open(session)):
                    for batch in found["changes"]:
                        yield f"id: {batch['sequence']}\nevent: changes\ndata: {json_text(batch)}\n\n"
                    if not found["changes"]:
                        quiet += await _pause(listener)
                        if quiet >= HEARTBEAT_SECONDS:
                            quiet = 0.0
                            yield "event: alive\ndata: {}\n\n"
                    found = await context.reads.run(change_values, dsn, known, found["next"], 500)
            except PgTrickleError as error:
                values = {"code": error.code, "title": error.message}
                yield f"event: failed\ndata: {json_text(values)}\n\n"
            finally:
                listening.__exit__(None, None, None)

        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(events(), media_type="text/event-stream", headers=headers)

    return routes


async def _pause(listener: Listener) -> float:
    """Wait for the next refresh, or for the time of a poll; return how long nothing happened."""
    waited = 0.0
    if not listener.waiting:
        listener.wake.clear()
        try:
            await asyncio.wait_for(listener.wake.wait(), POLL_SECONDS)
        except TimeoutError:
            waited = POLL_SECONDS
    listener.waiting.clear()
    return waited


def _point(text: str | None) -> Since:
    if text is None or text == "now":
        return "now" if text else None
    return int(text)
