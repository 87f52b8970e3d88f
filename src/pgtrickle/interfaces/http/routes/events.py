"""Server-sent events: refreshes, states and counts as they change."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse

from pgtrickle import __version__
from pgtrickle.interfaces.http.api_router import api_router
from pgtrickle.interfaces.http.context import Context, caller_of
from pgtrickle.interfaces.http.event_hub import messages
from pgtrickle.interfaces.http.table_row import json_text, time_text

Tables = Annotated[
    str | None, Query(max_length=100_000, description="Only these stream tables, with commas between them.")
]
_STREAM = {"content": {"text/event-stream": {"schema": {"type": "string"}}}}


def router(context: Context) -> APIRouter:
    """The route."""
    routes = api_router("events")
    hub, sessions = context.hub, context.gate.sessions

    @routes.get("/events", response_class=StreamingResponse, responses={200: _STREAM})
    async def events(request: Request, tables: Tables = None) -> StreamingResponse:
        """Refreshes, changed stream tables, removed ones and counts, as they happen.

        After a reconnect, `Last-Event-ID` continues where the connection was lost. A client that cannot keep
        up, or comes back too late, gets `resync` and has to read the overview again.
        """
        caller = caller_of(request)
        last_id = request.headers.get("last-event-id")
        names = frozenset(_names(tables)) if tables else None
        hello = json_text({"version": __version__, "at": time_text(datetime.now(UTC))})
        listening = hub.listening(names, last_id)
        # here and not in the stream, so that a refusal is an ordinary answer
        listener = listening.__enter__()

        async def stream() -> AsyncIterator[str]:
            try:
                async for message in messages(
                    hub,
                    listener,
                    hello,
                    is_resumed=bool(last_id),
                    with_errors=caller.has_token,
                    may_go_on=lambda: caller.session is None or sessions.is_open(caller.session),
                ):
                    yield message
            finally:
                listening.__exit__(None, None, None)

        return StreamingResponse(
            stream(),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    return routes


def _names(tables: str) -> list[str]:
    """The names of a list, in which a quoted name may have commas."""
    names, current, is_quoted = [], "", False
    for character in tables:
        is_quoted ^= character == '"'
        if character == "," and not is_quoted:
            names.append(current.strip())
            current = ""
        else:
            current += character
    return [name for name in [*names, current.strip()] if name]
