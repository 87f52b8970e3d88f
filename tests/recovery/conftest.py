"""A small shop with live stream tables, to be dumped, cloned, promoted and upgraded."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import psycopg
import pytest

from pgtrickle.catalog.tables import stream_tables
from pgtrickle.embedded import SUPERUSER
from pgtrickle.pipeline.session import Spark
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.story import Failure, refresh_all
from tests.fixtures.bags import assert_same_bag
from tests.fixtures.databases import APP, Database
from tests.fixtures.servers import binaries

QUERIES = {
    "totals": "select region, count(*) as orders, sum(amount) as amount from orders group by region",
    "large": "select o.id, amount, name from orders o join customers c on c.id = customer where amount > 5",
    "regions": "select count(*) as regions, max(amount) as best from totals",
}

_TABLES = """
create table customers (id int primary key, name text);
create table orders (id int primary key, customer int, region text, amount int);
grant select, trigger on customers, orders to trickle;
insert into customers values (1, 'Ada'), (2, 'Grace');
insert into orders select n, 1 + n % 2, 'r' || n % 3, n from generate_series(1, 20) n;
"""


@dataclass(frozen=True, slots=True)
class Shop:
    """Stream tables in one database, and an engine that keeps them."""

    database: Database
    engine: Engine

    def run(self, *statements: str) -> None:
        """As the application, each committed at once."""
        with self.database.connect(APP, autocommit=True) as app:
            for statement in statements:
                app.execute(statement)

    def ask(self, question: str) -> list[tuple[object, ...]]:
        """As the superuser."""
        with self.database.connect(SUPERUSER, autocommit=True) as admin:
            return admin.execute(question).fetchall()

    def refresh(self) -> dict[str, tuple[str, str]]:
        """Refresh all stream tables; the action and the reason of each."""
        with self.engine.connection() as connection:
            ids = [table.id for table in stream_tables(connection)]
        results = refresh_all(self.engine, ids, initiated_by="test", waits=True)
        for result in results:
            if isinstance(result, Failure):
                raise result.error
        return {r.name.name: (r.action.value, r.reason) for r in results if not isinstance(r, Failure)}

    def is_exact(self) -> None:
        """Every stream table equals its query."""
        with self.database.connect(APP, autocommit=True) as app:
            for name, query in QUERIES.items():
                assert_same_bag(app, f"select * from {name}", query)

    def follows_writes(self) -> None:
        """A write is captured, followed by its change alone, and the result is exact."""
        self.run(
            "insert into orders values (1000, 2, 'new', 1000)",
            "update orders set amount = amount + 1 where id = 7",
            "delete from orders where id = 3",
        )
        actions = {name: action for name, (action, _) in self.refresh().items()}
        assert actions == {"totals": "DIFFERENTIAL", "large": "DIFFERENTIAL", "regions": "DIFFERENTIAL"}
        self.is_exact()


OpenShop = Callable[[Database], Shop]


@pytest.fixture
def open_shop(spark: Spark) -> Iterator[OpenShop]:
    """An engine for a database that has the shop."""
    with ExitStack() as stack:

        def open_one(database: Database) -> Shop:
            return Shop(database, stack.enter_context(_engine(database, spark)))

        yield open_one


@contextmanager
def _engine(database: Database, spark: Spark) -> Iterator[Engine]:
    engine = Engine(database.dsn(), lambda: spark)
    try:
        yield engine
    finally:
        # the Spark belongs to the run, not to this engine
        engine._spark = None
        engine.close()


def build(database: Database) -> None:
    """Create the tables and the stream tables of the shop."""
    with database.connect(APP, autocommit=True) as app:
        app.execute(_TABLES)
        for name, query in QUERIES.items():
            app.execute("select pgtrickle.create_stream_table(%s, %s)", (name, query))


@pytest.fixture
def shop(database: Database, open_shop: OpenShop) -> Shop:
    """The shop, loaded, with changes that no refresh has followed yet."""
    build(database)
    shop = open_shop(database)
    shop.refresh()
    shop.is_exact()
    with database.connect(APP, autocommit=True) as app:
        leave_changes(app)
    return shop


def leave_changes(app: psycopg.Connection) -> None:
    """Write what no refresh has followed yet."""
    app.execute("insert into orders values (100, 1, 'late', 50)")
    app.execute("delete from orders where id = 2")


def run_tool(version: int, program: str, *arguments: str, given: bytes | None = None) -> bytes:
    """Run a program of PostgreSQL; its output."""
    done = subprocess.run(
        [str(binaries(version) / program), *arguments], input=given, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout
