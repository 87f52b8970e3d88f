"""A server that replicates logically, a second one with a subscriber, and refreshes that need no Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import NoReturn

import psycopg
import pytest

from pgtrickle.catalog.tables import find
from pgtrickle.embedded import Server
from pgtrickle.model.stream_table import RefreshOutcome
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.story import refresh
from tests.fixtures.databases import APP, TRICKLE, Database
from tests.fixtures.servers import new_server
from tests.fixtures.waiting import eventually


@pytest.fixture(scope="session")
def publisher(pytestconfig: pytest.Config) -> Iterator[Server]:
    with new_server(pytestconfig.getoption("--pg"), wal_level="logical") as server:
        yield server


@pytest.fixture(scope="session")
def other_server(pytestconfig: pytest.Config) -> Iterator[Server]:
    with new_server(pytestconfig.getoption("--pg")) as server:
        yield server


@pytest.fixture
def server(publisher: Server) -> Server:
    """The databases of these tests are on the publisher, on which `app` may create publications."""
    return publisher


@pytest.fixture(autouse=True)
def may_publish(database: Database, admin: psycopg.Connection) -> None:
    admin.execute(f"grant create on database {database.name} to {APP}")


def no_spark() -> NoReturn:
    raise AssertionError("a FULL refresh needs no Spark")


@pytest.fixture
def refreshed(database: Database) -> Iterator[Callable[[str], RefreshOutcome]]:
    """Refreshes a stream table in the mode FULL."""
    engine = Engine(database.dsn(TRICKLE), no_spark, max_connections=5)

    def run(name: str) -> RefreshOutcome:
        with engine.connection() as connection:
            table = find(connection, name)
        return refresh(engine, table.id, initiated_by="test", waits=True)

    yield run
    engine.close()


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A database on another server that subscribes to the publisher, with a log of what arrives."""

    connection: psycopg.Connection
    publisher: psycopg.Connection
    publisher_dsn: str

    def create_table(self, columns: str) -> None:
        """Create the table `sales` with a log of each row that arrives."""
        self.connection.execute(f"create table sales({columns})")
        self.connection.execute(
            "create table arrived(number int generated always as identity, change text);"
            "create or replace function note() returns trigger language plpgsql as"
            " $$ begin insert into public.arrived(change) values (tg_op); return null; end $$;"
            "create trigger note after insert or update or delete on sales for each row"
            " execute function note();"
            "create trigger note_all after truncate on sales for each statement execute function note();"
            "alter table sales enable always trigger note;"
            "alter table sales enable always trigger note_all"
        )

    def subscribe(self, publication: str = "pgt_pub_sales", slot: str = "reader") -> None:
        self.connection.execute(
            f"create subscription {slot} connection '{self.publisher_dsn}' publication {publication}"
        )

    def stop(self, slot: str = "reader") -> None:
        """Disable the subscription, and wait until its slot is free."""
        self.connection.execute(f"alter subscription {slot} disable")
        eventually(lambda: not self._is_active(slot))

    def resume(self, slot: str = "reader") -> None:
        self.connection.execute(f"alter subscription {slot} enable")

    def drop(self, slot: str = "reader") -> None:
        self.connection.execute(f"drop subscription if exists {slot}")

    def rows(self) -> list[tuple[object, ...]]:
        return sorted(self.connection.execute("select * from sales").fetchall())

    def has_the_rows(self) -> None:
        """Wait until the subscriber has the rows of the stream table, as a bag."""
        eventually(
            lambda: self.rows() == sorted(self.publisher.execute("select * from sales").fetchall()),
            seconds=60,
        )

    def arrived(self) -> list[str]:
        """What came since the last call, in order."""
        rows = self.connection.execute("delete from arrived returning number, change").fetchall()
        return [change for _, change in sorted(rows)]

    def _is_active(self, slot: str) -> bool:
        found = self.publisher.execute(
            "select active from pg_replication_slots where slot_name = %s", (slot,)
        ).fetchone()
        return found == (True,)


@pytest.fixture
def subscriber(other_server: Server, database: Database, admin: psycopg.Connection) -> Iterator[Subscriber]:
    name = f"subscriber_{database.name}"
    with closing(psycopg.connect(other_server.dsn(), autocommit=True)) as maker:
        maker.execute(f"create database {name}")
        with closing(psycopg.connect(other_server.dsn(name), autocommit=True)) as connection:
            found = Subscriber(connection, admin, database.dsn("postgres"))
            yield found
            found.drop()
        maker.execute(f"drop database {name} with (force)")


@pytest.fixture
def slot(admin: psycopg.Connection) -> Iterator[str]:
    """A slot that nobody reads."""
    admin.execute("select pg_create_logical_replication_slot('dead', 'pgoutput')")
    yield "dead"
    admin.execute("select pg_drop_replication_slot('dead')")
