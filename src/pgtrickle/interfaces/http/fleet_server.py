"""The HTTP server of a sidecar that serves several databases.

The page and the API of each database are below `databases/NAME/`. At the top there is a list of them.
"""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from pgtrickle.interfaces.http.web_server import STOP_SECONDS, WebServer
from pgtrickle.model.errors import UnknownAddress
from pgtrickle.model.settings import Settings

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from pgtrickle.commands.run import RefreshEvent
    from pgtrickle.commands.run_databases import Fleet
    from pgtrickle.interfaces.http.context import Context
    from pgtrickle.interfaces.metrics.fleet_metrics import FleetMetrics
    from pgtrickle.scheduler.service.fleet import Member

PREFIX = b"/databases/"


class FleetServer(WebServer):
    """Serves a list of the databases, and the page and API of each once somebody asks for it."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.fleet: Fleet | None = None
        self.metrics: FleetMetrics | None = None
        if find_spec("prometheus_client") is not None:
            from pgtrickle.interfaces.metrics.fleet_metrics import FleetMetrics

            self.metrics = FleetMetrics(settings.metrics_max_tables)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()
        self._sites: dict[Member, tuple[Context, ASGIApp]] = {}
        self._opening: dict[Member, asyncio.Task[ASGIApp]] = {}
        self._top: ASGIApp | None = None

    def start(self, fleet: Fleet) -> None:
        """Answer requests. Returns at once."""
        self.fleet = fleet
        if self.metrics is not None:
            fleet.on_join, fleet.on_leave = self.metrics.add, self._leave
            self.metrics.broker = fleet.broker
        self._thread.start()

    def note(self, event: RefreshEvent) -> None:
        """Take in an event of the sidecar. It never waits."""
        member = self.member(event.database) if event.database is not None else None
        if member is None:
            return
        if self.metrics is not None:
            self.metrics.note(member, event)
        with self._lock:
            site = self._sites.get(member)
        if site is not None:
            site[0].observer.note(event)

    def member(self, name: str) -> Member | None:
        """The database of that name, if it is served."""
        members = self.fleet.members() if self.fleet is not None else ()
        return next((member for member in members if member.database.name == name), None)

    def application(self, loop: asyncio.AbstractEventLoop) -> ASGIApp:
        """The list at the top, and the databases below it."""
        from pgtrickle.interfaces.http.fleet_routes import top_application

        self._loop = loop
        self._top = top_application(self)
        return self._answer

    def close_commands(self) -> None:
        """Start no more commands."""
        for context, _ in self._open_sites():
            context.close()
        if self.metrics is not None:
            self.metrics.close()

    def close_streams(self) -> None:
        """End the event streams."""
        for context, _ in self._open_sites():
            context.hub.close()

    def close_observers(self) -> None:
        """Stop the observers."""
        for context, _ in self._open_sites():
            context.observer.stop(STOP_SECONDS)

    def _open_sites(self) -> list[tuple[Context, ASGIApp]]:
        with self._lock:
            return list(self._sites.values())

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self._top is not None
        found = _below(scope) if scope["type"] == "http" else None
        if found is None:
            await self._top(scope, receive, send)
            return
        name, inner = found
        member = self.member(name)
        if member is None:
            scope.setdefault("state", {})["missing"] = name
            await self._top({**scope, "path": "/databases", "raw_path": b"/databases"}, receive, send)
            return
        site = await self._site(member)
        await site(inner, receive, send)

    async def _site(self, member: Member) -> ASGIApp:
        with self._lock:
            found = self._sites.get(member)
        if found is not None:
            return found[1]
        if member not in self._opening:
            self._opening[member] = asyncio.create_task(self._open(member))
        try:
            return await self._opening[member]
        finally:
            self._opening.pop(member, None)

    async def _open(self, member: Member) -> ASGIApp:
        """Make the page and the API of a database. That takes a moment, so a thread does it."""
        from pgtrickle.interfaces.http.application import build, guarded
        from pgtrickle.interfaces.http.context import open_context

        def make() -> tuple[Context, ASGIApp]:
            own = replace(self.settings, dsn=member.engine.dsn, http_dsn=None)
            context = open_context(own, self.gate)
            context.engine = context.readiness.engine = member.engine
            context.readiness.loop = member.loop
            return context, guarded(build(context), self.gate)

        context, app = await asyncio.to_thread(make)
        assert self._loop is not None
        context.hub.open(self._loop)
        context.observer.start()
        with self._lock:
            self._sites[member] = context, app
        return app

    def _leave(self, member: Member) -> None:
        """Close what belongs to a database that is not served any more."""
        if self.metrics is not None:
            self.metrics.remove(member)
        with self._lock:
            site = self._sites.pop(member, None)
        if site is None or self._loop is None:
            return
        context = site[0]
        context.close()
        self._loop.call_soon_threadsafe(context.hub.close)
        threading.Thread(target=context.observer.stop, args=(STOP_SECONDS,), daemon=True).start()


def _below(scope: Scope) -> tuple[str, Scope] | None:
    """The database of a request and the rest of its path; None for a request about no database."""
    raw: Any = scope.get("raw_path")
    path = raw if isinstance(raw, bytes) else scope["path"].encode()
    if not path.startswith(PREFIX):
        return None
    name, slash, rest = path[len(PREFIX) :].partition(b"/")
    if not name or not slash:
        return None
    inner = {**scope, "path": unquote(f"/{rest.decode('ascii', 'replace')}"), "raw_path": b"/" + rest}
    return unquote(name.decode("ascii", "replace")), inner


def site_path(name: str) -> str:
    """The path of a database, relative to the list."""
    return f"databases/{quote(name, safe='')}/"


def unknown_database(name: str) -> UnknownAddress:
    """The error for a database that is not served."""
    return UnknownAddress(f"this sidecar does not serve a database {name}", hint="the list is at /")
