"""Listens, and serves an application in a thread with an event loop of its own."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from abc import ABC, abstractmethod
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from pgtrickle.interfaces.event_log import LOG
from pgtrickle.model.errors import BadSetting, HttpUnavailable
from pgtrickle.model.http_settings import HttpAddress
from pgtrickle.model.settings import Settings

if TYPE_CHECKING:
    from starlette.types import ASGIApp

STOP_SECONDS: Final = 3.0
BACKLOG: Final = 128
_LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class WebServer(ABC):
    """It listens as soon as it is made, and answers once it is started. A subclass says what it serves."""

    def __init__(self, settings: Settings) -> None:
        assert settings.http is not None
        _check_packages()
        from pgtrickle.interfaces.http.access import Gate
        from pgtrickle.interfaces.http.attempts import Attempts
        from pgtrickle.interfaces.http.sessions import Sessions
        from pgtrickle.interfaces.http.tokens import find_token, generate_token

        self.settings = settings
        token = find_token(settings)
        if token is None and not settings.http.is_loopback:
            raise BadSetting(
                f"the HTTP server needs a token to listen on {settings.http}",
                hint="write one into a file and give it with --http-token-file, or listen on 127.0.0.1",
            )
        self._socket = _listen(settings.http)
        host, port = settings.http.host, self._socket.getsockname()[1]
        self.address = HttpAddress(host, port)
        self.token = token or generate_token(settings, os.environ, port)
        # an address that stands for all interfaces is no name
        names = _LOOPBACK_NAMES | {host.lower(), *settings.http_host} - {"0.0.0.0", "::"}
        self.gate = Gate(
            self.token, frozenset(names), port, settings.http.is_loopback, Sessions(), Attempts()
        )
        self._server: Any = None
        self._is_stopping = False
        self._thread = threading.Thread(target=self._serve, name="http server", daemon=True)

    @property
    def url(self) -> str:
        """The address of the page."""
        host = "localhost" if self.address.host == "localhost" else self.address
        return f"http://{host}:{self.address.port}/" if host == "localhost" else f"http://{host}/"

    def where(self) -> str:
        """The address of the page and the place of the token, for a log."""
        place = "your token signs in" if self.token.file is None else f"the token is in {self.token.file}"
        return f"{self.url}; {place}."

    def login_link(self) -> str:
        """The address of the page with a code that signs in, once and within ten minutes.

        The code is behind the #, so browsers send it to no server and write it into no log.
        """
        return f"{self.url}#login={self.gate.sessions.new_code()}"

    def stop(self) -> None:
        """End all requests and streams, within a few seconds."""
        self._is_stopping = True
        if self._server is not None:
            self._server.should_exit = True
        self.close_commands()
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)
        self.close_observers()
        self._socket.close()
        if self.token.file is not None:
            self.token.file.unlink(missing_ok=True)

    @abstractmethod
    def application(self, loop: asyncio.AbstractEventLoop) -> ASGIApp:
        """What is served, in this event loop."""

    @abstractmethod
    def close_commands(self) -> None:
        """Start no more commands."""

    @abstractmethod
    def close_streams(self) -> None:
        """End the event streams. Called in the event loop."""

    @abstractmethod
    def close_observers(self) -> None:
        """Stop what observes the databases."""

    def _serve(self) -> None:
        try:
            asyncio.run(self._run())
        except Exception as error:
            LOG.error("The HTTP server has stopped: %s: %s", type(error).__name__, error)

    async def _run(self) -> None:
        import uvicorn

        from pgtrickle.interfaces.http.connections import BoundedProtocol

        configuration = uvicorn.Config(
            self.application(asyncio.get_running_loop()),
            interface="asgi3",
            lifespan="off",
            ws="none",
            http=BoundedProtocol,
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=15,
            timeout_graceful_shutdown=1,
        )
        self._server = server = uvicorn.Server(configuration)
        server.should_exit = self._is_stopping
        closing = asyncio.create_task(self._close_streams(server))
        await server.serve(sockets=[self._socket])
        await closing

    async def _close_streams(self, server: Any) -> None:
        """End event streams when the server stops; it would wait for them otherwise."""
        while not server.should_exit:
            await asyncio.sleep(0.1)
        self.close_streams()


def _check_packages() -> None:
    missing = [name for name in ("fastapi", "uvicorn") if find_spec(name) is None]
    if missing:
        raise HttpUnavailable(
            f"the HTTP server needs packages that are not installed: {', '.join(missing)}",
            hint="run pip install 'pgtrickle[http]'",
        )


def _listen(address: HttpAddress) -> socket.socket:
    try:
        family, _, _, _, place = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, socket.SOCK_STREAM)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(place)
            listening.listen(BACKLOG)
        except OSError:
            listening.close()
            raise
        return listening
    except OSError as error:
        raise HttpUnavailable(
            f"the HTTP server cannot listen on {address}: {error.strerror or error}",
            hint="end the process that uses the port, or give --http another address",
        ) from None
