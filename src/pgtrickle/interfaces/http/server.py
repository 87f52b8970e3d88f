"""The HTTP server of a sidecar that serves one database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

from pgtrickle.interfaces.http.web_server import STOP_SECONDS, WebServer
from pgtrickle.model.http_settings import HTTP
from pgtrickle.model.settings import Settings

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from pgtrickle.commands.run import Loop, RefreshEvent
    from pgtrickle.interfaces.http.context import Context
    from pgtrickle.interfaces.http.fleet_server import FleetServer
    from pgtrickle.refresh.engine import Engine


class HttpServer(WebServer):
    """Serves the API and the page of one database."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        from pgtrickle.interfaces.http.context import open_context

        self.context: Context = open_context(settings, self.gate)

    def start(self, engine: Engine | None = None) -> None:
        """Answer requests. Returns at once."""
        if engine is not None:
            self.attach(engine)
        self.context.observer.start()
        self._thread.start()

    def attach(self, engine: Engine) -> None:
        """Show what this engine does, and explain plans by it."""
        self.context.engine = self.context.readiness.engine = engine
        if find_spec("prometheus_client") is not None:
            from pgtrickle.interfaces.metrics import Metrics

            self.context.metrics = Metrics(engine, self.settings.metrics_max_tables)

    def note(self, event: RefreshEvent) -> None:
        """Take in an event of the sidecar. It never waits."""
        self.context.observer.note(event)
        if self.context.metrics is not None:
            self.context.metrics.note(event)

    def watch(self, loop: Loop) -> None:
        """Show what this loop knows from now on."""
        self.context.readiness.loop = loop
        if self.context.metrics is not None:
            self.context.metrics.watch(loop)

    def application(self, loop: asyncio.AbstractEventLoop) -> ASGIApp:
        """The routes behind the guard."""
        from pgtrickle.interfaces.http.application import build, guarded

        self.context.hub.open(loop)
        return guarded(build(self.context), self.context.gate)

    def close_commands(self) -> None:
        """Start no more commands, and gather no more metrics."""
        self.context.close()
        if self.context.metrics is not None:
            self.context.metrics.close()

    def close_streams(self) -> None:
        """End the event streams."""
        self.context.hub.close()

    def close_observers(self) -> None:
        """Stop the observer."""
        self.context.observer.stop(STOP_SECONDS)


def open_server(settings: Settings, http: str | None = None) -> HttpServer | None:
    """Listen at an address, else at that of the settings; None if there is neither."""
    if http is not None:
        settings = replace(settings, http=HTTP.value(http))
    return None if settings.http is None else HttpServer(settings)


def both(
    first: Callable[[RefreshEvent], None], server: HttpServer | FleetServer | None
) -> Callable[[RefreshEvent], None]:
    """Pass events to a function and to a server."""
    if server is None:
        return first
    note = server.note

    def pass_on(event: RefreshEvent) -> None:
        note(event)
        first(event)

    return pass_on
