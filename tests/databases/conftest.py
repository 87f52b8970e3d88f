"""Several databases of one server, served by one process without Spark: all stream tables have mode FULL."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Any, NoReturn

import psycopg
import pytest

from pgtrickle.commands.run_databases import Fleet, build_fleet, run_databases
from pgtrickle.embedded import Server
from pgtrickle.interfaces.http.fleet_server import FleetServer
from pgtrickle.model.databases import Databases, ServedDatabase
from pgtrickle.model.settings import Settings
from pgtrickle.pipeline.supply import SparkSupply
from pgtrickle.scheduler.service.fleet import Member
from pgtrickle.scheduler.service.unit_refresh import RefreshEvent
from tests.fixtures.databases import APP, TEMPLATE, Database, Templates, create_database, drop_database
from tests.fixtures.waiting import eventually

pytestmark = pytest.mark.database


def no_spark() -> NoReturn:
    raise AssertionError("Spark was started")


@dataclass(slots=True)
class Shop:
    """A database with a source and a stream table over it."""

    database: Database
    app: psycopg.Connection

    @property
    def name(self) -> str:
        return self.database.name

    def served(self, quota: int = 1) -> ServedDatabase:
        return ServedDatabase(self.name, self.database.dsn(), quota)

    def write(self, amount: int) -> None:
        self.app.execute("insert into orders(amount) values (%s)", (amount,))

    def total(self) -> int | None:
        row = self.app.execute("select total from sales").fetchone()
        return None if row is None else row[0]

    def shows(self, total: int) -> None:
        # sooner than everything is checked again, whatever was told
        eventually(lambda: self.total() == total, seconds=50)


@dataclass(slots=True)
class ServedFleet:
    """A fleet that runs in a thread, and what it has told."""

    fleet: Fleet
    supply: SparkSupply
    events: list[RefreshEvent] = field(default_factory=list)
    server: FleetServer | None = None

    def member(self, shop: Shop) -> Member:
        return next(m for m in self.fleet.members() if m.database.name == shop.name)

    def state(self, shop: Shop) -> str:
        return self.member(shop).loop.state.value

    def told(self, shop: Shop) -> list[str]:
        """What was told about a database itself, other than its stream tables."""
        return [
            event.error.message if event.error else event.note or ""
            for event in list(self.events)
            if event.database == shop.name and not event.name.name
        ]


MakeShop = Callable[[], Shop]
RunFleet = Callable[..., ServedFleet]


@pytest.fixture
def shop(server: Server, templates: Templates, database_names: Iterator[str]) -> Iterator[MakeShop]:
    """Creates databases, each with the stream table `sales`."""
    templates.ensure(server)
    with ExitStack() as stack:

        def make() -> Shop:
            database = create_database(server, next(database_names), TEMPLATE)
            stack.callback(_drop, database)
            app = stack.enter_context(closing(database.connect(APP, autocommit=True)))
            app.execute("create table orders (id int generated always as identity primary key, amount int)")
            app.execute("grant select, trigger on orders to trickle")
            app.execute(
                "select pgtrickle.create_stream_table('sales',"
                " 'select coalesce(sum(amount), 0) as total from orders', '100ms', 'FULL')"
            )
            return Shop(database, app)

        yield make


def _drop(database: Database) -> None:
    with psycopg.connect(database.server.dsn(), autocommit=True) as admin:
        row = admin.execute("select from pg_database where datname = %s", (database.name,)).fetchone()
    if row is not None:
        drop_database(database)


@pytest.fixture
def run_fleet() -> Iterator[RunFleet]:
    """Serves databases, or a server, until the test ends."""
    stops: list[tuple[threading.Event, threading.Thread, ServedFleet]] = []
    failures: list[BaseException] = []

    def run(*databases: ServedDatabase, servers: tuple[Any, ...] = (), **options: Any) -> ServedFleet:
        supply, stop = SparkSupply(no_spark), threading.Event()
        supply.begin = lambda: None  # type: ignore[method-assign]
        settings = Settings(**{"idle_after": 0.0, "stop_timeout": 20.0, "max_connections": 8, **options})
        events: list[RefreshEvent] = []
        server = FleetServer(settings) if settings.http is not None else None

        def on_event(event: RefreshEvent) -> None:
            events.append(event)
            if server is not None:
                server.note(event)

        served = ServedFleet(build_fleet(settings, supply, on_event), supply, events, server)
        found = Databases(databases, servers)
        if server is not None:
            server.start(served.fleet)

        def serve() -> None:
            try:
                assert run_databases(served.fleet, found, supply, stop, on_event, settings)
            except BaseException as failure:
                failures.append(failure)

        thread = threading.Thread(target=serve, name="fleet")
        thread.start()
        stops.append((stop, thread, served))
        eventually(lambda: len(served.fleet.members()) >= len(databases) or bool(failures))
        return served

    yield run
    for stop, thread, served in stops:
        stop.set()
        thread.join(90)
        if served.server is not None:
            served.server.stop()
        served.fleet.release()
        served.supply.close()
    assert failures == []
