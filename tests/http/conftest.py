"""A real server on a free port of the loopback interface, over a real PostgreSQL."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import httpx
import psycopg
import pytest

from pgtrickle.commands.engine import build_engine
from pgtrickle.commands.run import run
from pgtrickle.interfaces.http.server import HttpServer, both
from pgtrickle.model.http_settings import HttpAddress
from pgtrickle.model.settings import Settings
from pgtrickle.refresh.engine import Engine
from tests.fixtures.databases import Database
from tests.fixtures.waiting import eventually

TOKEN = "a-token-of-the-tests-0123456789"
OUTSIDE = ("/healthz", "/readyz", "/metrics")


@dataclass(slots=True)
class Api:
    """A server, and a client of it."""

    server: HttpServer
    client: httpx.Client
    settings: Settings
    token: str = TOKEN

    @property
    def bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def get(self, path: str, *, token: bool = False, **more: Any) -> httpx.Response:
        """A GET, without the token unless asked for."""
        return self.send("GET", path, token=token, **more)

    def post(self, path: str, body: object = None, *, token: bool = True, **more: Any) -> httpx.Response:
        """A POST with the token."""
        return self.send("POST", path, token=token, json=body, **more)

    def send(self, method: str, path: str, *, token: bool = True, **more: Any) -> httpx.Response:
        headers = {**(self.bearer if token else {}), **more.pop("headers", {})}
        place = path if path.startswith(OUTSIDE) else f"/api/v1{path}"
        return self.client.request(method, place, headers=headers, **more)

    def row(self, name: str, *, token: bool = False) -> dict[str, Any]:
        """A stream table in the overview."""
        tables = self.get("/overview", token=token).json()["tables"]
        return next(row for row in tables if row["name"] == name)


def plain_client(base: str = "", **more: Any) -> httpx.Client:
    """A client without TLS, for which it would read the certificates of the system each time."""
    return httpx.Client(base_url=base, timeout=60, verify=False, **more)


Serve = Callable[..., Api]
"""Starts a server on a free port; called as `serve(http_host=("shop.test",))`."""


@pytest.fixture
def serve(database: Database) -> Iterator[Serve]:
    opened: list[Api] = []

    def start(**changes: Any) -> Api:
        settings = Settings(dsn=database.dsn(), http=HttpAddress("127.0.0.1", 0), http_token=TOKEN)
        settings = replace(settings, **changes)
        server = HttpServer(settings)
        server.start()
        client = plain_client(server.url)
        opened.append(Api(server, client, settings))
        return opened[-1]

    yield start
    for api in opened:
        api.client.close()
        api.server.stop()


@pytest.fixture
def api(serve: Serve) -> Api:
    """A server on the loopback interface, with a token of its own."""
    return serve()


@pytest.fixture
def orders(source: Any) -> Any:
    """A source."""
    return source(
        "orders(id int primary key, region text, amount int)", rows=[(1, "north", 10), (2, "south", 5)]
    )


@pytest.fixture
def shop(orders: Any, app: psycopg.Connection) -> Any:
    """Two stream tables, one over the other, that need no Spark; nobody refreshes them."""
    with app.transaction():
        app.execute(
            "select pgtrickle.create_stream_table('sales',"
            " 'select region, sum(amount) as total from orders group by region', '1s', 'FULL')"
        )
        app.execute(
            "select pgtrickle.create_stream_table('big', 'select * from sales where total > 7', '1s', 'FULL')"
        )
    return orders


@contextmanager
def sidecar_of(api: Api) -> Iterator[Engine]:
    """A sidecar that tells the server its events. It has no Spark, so it serves tables of mode FULL."""
    stop, failures = threading.Event(), list[BaseException]()
    engine = build_engine(api.settings, no_spark)
    engine.supply.begin = lambda: None  # type: ignore[method-assign]
    api.server.attach(engine)

    def serve() -> None:
        try:
            run(engine, stop, both(lambda event: None, api.server), api.settings, api.server.watch)
        except BaseException as failure:
            failures.append(failure)

    thread = threading.Thread(target=serve, name="sidecar")
    thread.start()
    try:
        yield engine
    finally:
        stop.set()
        thread.join(90)
        engine.close()
    assert failures == []


def no_spark() -> NoReturn:
    raise AssertionError("Spark was started")


@pytest.fixture
def served(api: Api, shop: Any) -> Iterator[Any]:
    """The two stream tables, loaded and followed."""
    with sidecar_of(api):
        eventually(lambda: api.get("/overview").json()["counts"]["fresh"] == 2)
        yield shop
