"""What every request passes before a route sees it, and every response after: access, limits, headers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from starlette.requests import HTTPConnection, Request
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pgtrickle.interfaces.http.access import Gate, Need
from pgtrickle.interfaces.http.path_names import with_parts
from pgtrickle.interfaces.http.problems import problem, unexpected_error
from pgtrickle.model.errors import BadRequest, PgTrickleError, RequestTooLarge

MOST_BODY_BYTES: Final = 1_000_000
LONGEST_LENGTH: Final = 18
BODY_SECONDS: Final = 20.0
"""How long a client may take to send its body."""

SECURITY_HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self';"
    " img-src 'self' data:; font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_HEADERS: Final = [(name.lower().encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]
_NO_STORE: Final = (b"cache-control", b"no-store")


class Guard:
    """Lets a request through if `access` and the gate say so."""

    def __init__(
        self, app: ASGIApp, *, gate: Gate, routes: Sequence[BaseRoute], access: Mapping[tuple[str, str], Need]
    ) -> None:
        self._app, self._gate, self._routes, self._access = app, gate, routes, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            # there are no sockets, and the server has no start-up of its own
            return
        scope = with_parts(scope)
        is_api = scope["path"].startswith("/api/")
        has_begun = False

        async def send_guarded(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                given = {name for name, _ in message["headers"]}
                added = [header for header in _HEADERS if header[0] not in given]
                if is_api and b"cache-control" not in given:
                    added.append(_NO_STORE)
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        try:
            caller = self._gate.caller(HTTPConnection(scope))
            path = self._path(scope)
            if path is not None:
                self._gate.authorise(caller, self._access.get((scope["method"], path)))
            scope.setdefault("state", {})["caller"] = caller
            await self._app(scope, await _with_body(Request(scope), receive), send_guarded)
        except PgTrickleError as error:
            if has_begun:
                raise
            await problem(error)(scope, receive, send_guarded)
        except Exception as error:
            if has_begun:
                raise
            told = unexpected_error(scope["method"], scope["path"], error)
            await problem(told)(scope, receive, send_guarded)

    def _path(self, scope: Scope) -> str | None:
        """The path of the route that takes this request, as it was declared; None if there is none."""
        for route in self._routes:
            match, _ = route.matches(scope)
            if match is Match.FULL:
                return str(getattr(route, "path", ""))
        return None


async def _with_body(request: Request, receive: Receive) -> Receive:
    """Receive the whole body, of limited size and in limited time; return what gives it to the route."""
    declared = request.headers.get("content-length", "0")
    is_number = declared.isascii() and declared.isdigit() and len(declared) <= LONGEST_LENGTH
    if not is_number or int(declared) > MOST_BODY_BYTES:
        raise _too_large()
    if declared == "0" and "transfer-encoding" not in request.headers:
        return receive
    try:
        body = await asyncio.wait_for(_read(receive), BODY_SECONDS)
    except TimeoutError:
        raise RequestTooLarge(
            f"the body did not arrive within {BODY_SECONDS:.0f} s", hint="send it faster"
        ) from None
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        # after the body, only the end of the connection is left to receive
        return waiting.pop() if waiting else await receive()

    return replay


async def _read(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise BadRequest("the connection ended before the body was complete", hint="send it again")
        body += message.get("body", b"")
        if len(body) > MOST_BODY_BYTES:
            raise _too_large()
        if not message.get("more_body", False):
            return bytes(body)


def _too_large() -> RequestTooLarge:
    return RequestTooLarge(f"the body is larger than {MOST_BODY_BYTES:,} bytes", hint="send less")
