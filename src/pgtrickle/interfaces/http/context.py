"""What the routes of a server share."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.requests import Request

from pgtrickle.commands.overview import table_overview
from pgtrickle.interfaces.http.access import Caller, Gate
from pgtrickle.interfaces.http.command_pool import LONG_SECONDS, READ_SECONDS, WORK_SECONDS, CommandPool
from pgtrickle.interfaces.http.event_hub import EventHub
from pgtrickle.interfaces.http.observer import Observer
from pgtrickle.interfaces.http.readiness import Readiness
from pgtrickle.interfaces.http.snapshot import Snapshot
from pgtrickle.interfaces.http.table_row import TableRow
from pgtrickle.model.errors import UnknownStreamTable
from pgtrickle.model.settings import Settings

if TYPE_CHECKING:
    from pgtrickle.interfaces.metrics import Metrics
    from pgtrickle.refresh.engine import Engine


@dataclass(slots=True)
class Context:
    """The parts of a server. `dsn` is the address for commands, whose role decides what they may do."""

    dsn: str
    settings: Settings
    gate: Gate
    hub: EventHub
    observer: Observer
    readiness: Readiness
    engine: Engine | None = None
    """The engine of the sidecar; None for a server beside other sidecars."""
    metrics: Metrics | None = None
    hides_errors: bool = False
    """Whether the role of `dsn` may see less than the engine."""
    reads: CommandPool = field(default_factory=lambda: CommandPool("reads", READ_SECONDS))
    works: CommandPool = field(default_factory=lambda: CommandPool("works", WORK_SECONDS, threads=2))
    waits: CommandPool = field(default_factory=lambda: CommandPool("waits", LONG_SECONDS))
    """For commands that a sidecar carries out and that may take long: refreshes and comparisons."""

    async def snapshot(self) -> Snapshot:
        """A snapshot that is new enough to be shown."""
        found = self.observer.current()
        return found if found is not None else await asyncio.wrap_future(self.observer.ask())

    async def new_row(self, name: str) -> TableRow:
        """A stream table as it is now, by the name that the catalog has for it."""
        snapshot = await asyncio.wrap_future(self.observer.ask())
        if name not in snapshot.rows:
            raise UnknownStreamTable(f"there is no stream table {name}", hint="it was dropped meanwhile")
        return snapshot.rows[name]

    async def changed_row(self, name: str) -> TableRow:
        """A stream table after a change, by a name as a user writes it."""
        found = await self.works.run(table_overview, self.dsn, name)
        return await self.new_row(str(found.status.name))

    def close(self) -> None:
        """Start nothing more."""
        for pool in (self.reads, self.works, self.waits):
            pool.close()


def open_context(settings: Settings, gate: Gate) -> Context:
    """The parts of a server for the database of the settings. Nothing runs yet."""
    hub, dsn = EventHub(), settings.http_dsn or settings.dsn
    hides_errors = settings.http_dsn is not None
    observer = Observer(dsn, hub, hides_errors=hides_errors)
    return Context(dsn, settings, gate, hub, observer, Readiness(settings.dsn), hides_errors=hides_errors)


def caller_of(request: Request) -> Caller:
    """Who sends a request, as the guard has found out."""
    found = request.scope["state"]["caller"]
    assert isinstance(found, Caller)
    return found
