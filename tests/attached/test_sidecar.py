"""A sidecar that serves two databases follows one for the other, without being asked."""

from __future__ import annotations

import random
import threading
from contextlib import closing
from datetime import UTC, datetime
from functools import partial

import psycopg
import pytest

from pgtrickle.catalog.tables import find, stream_table
from pgtrickle.commands import attached as commands
from pgtrickle.commands.define import create
from pgtrickle.embedded import SUPERUSER
from pgtrickle.model.errors import AttachedFailed, NotDeclared
from pgtrickle.refresh.outcome import Failure
from pgtrickle.scheduler.service.failures import note_failure
from tests.databases.conftest import run_fleet, shop
from tests.fixtures.databases import TRICKLE
from tests.fixtures.waiting import eventually

__all__ = ["run_fleet", "shop"]

pytestmark = [pytest.mark.database, pytest.mark.slow]

QUERY = "select customer, count(*) as n, sum(amount) as total from crm.public.payments group by customer"


@pytest.fixture
def pair(shop, run_fleet):
    """Two served databases; the first has payments, the second reads them as crm."""
    there, here = shop(), shop()
    there.app.execute("create table payments (id int primary key, customer int, amount int)")
    there.app.execute("grant select, trigger on payments to trickle")
    with closing(here.database.connect(SUPERUSER, autocommit=True)) as admin:
        admin.execute("grant create on schema public to trickle")
    served = run_fleet(there.served(), here.served())
    commands.attach(here.database.dsn(), "crm", there.name)
    return there, here, served


def rows(connection: psycopg.Connection, query: str) -> list[tuple[object, ...]]:
    return sorted(connection.execute(query).fetchall())


def is_equal(there, here) -> bool:
    with closing(here.database.connect(TRICKLE, autocommit=True)) as reader:
        return rows(reader, "select * from by_customer") == rows(
            there.app, QUERY.replace("crm.public.payments", "payments")
        )


def refreshes(here) -> int:
    row = here.app.execute(
        "select count(*) from pgtrickle.visible_history h join pgtrickle.stream_tables_info i using (pgt_id)"
        " where i.pgt_name = 'by_customer' and h.action <> 'NO_DATA'"
    ).fetchone()
    return int(row[0])


def has_refreshed_since(here, before: int) -> bool:
    return refreshes(here) > before


def make(here) -> None:
    create(here.database.dsn(), "by_customer", QUERY, {"refresh_mode": "FULL", "schedule": "100ms"})


def test_creating_a_stream_table_declares_what_it_reads(pair):
    there, here, _ = pair
    there.app.execute("insert into payments values (1, 1, 10), (2, 2, 20)")
    make(here)
    eventually(lambda: is_equal(there, here), seconds=30)
    there.app.execute("update payments set amount = 11 where id = 1; delete from payments where id = 2")
    eventually(lambda: is_equal(there, here), seconds=30)
    (status,) = commands.attached(here.database.dsn())
    assert (status.alias, status.tables, status.failing_since) == ("crm", 1, None)


def test_a_table_that_cannot_be_declared_is_told_at_once(pair):
    _, here, _ = pair
    with pytest.raises(NotDeclared, match="there is no such table"):
        create(here.database.dsn(), "x", "select * from crm.public.nothing", {})


def test_a_table_that_was_away_and_is_back_is_followed_again(pair):
    there, here, _ = pair
    make(here)
    there.app.execute("insert into payments values (1, 1, 1)")
    eventually(lambda: is_equal(there, here), seconds=30)
    there.app.execute("alter table payments rename to hidden")
    eventually(
        lambda: (
            here.app.execute(
                "select count(*) from pgtrickle.pgt_attached_tables where last_error is not null"
            ).fetchone()
            == (1,)
        ),
        seconds=30,
    )
    there.app.execute("alter table hidden rename to payments; insert into payments values (2, 2, 2)")
    eventually(lambda: is_equal(there, here), seconds=30)


def test_a_database_that_is_down_stops_only_what_reads_it_and_is_told(pair, server):
    there, here, served = pair
    make(here)
    eventually(lambda: is_equal(there, here), seconds=30)
    with psycopg.connect(server.dsn(), autocommit=True) as admin:
        admin.execute(f"alter database {there.name} allow_connections false")
        admin.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = %s and usename = 'trickle'",
            (there.name,),
        )
        eventually(lambda: commands.attached(here.database.dsn())[0].failing_since is not None, seconds=30)
        here.write(7)
        here.shows(7)
        there.app.execute("insert into payments values (5, 5, 5)")
        admin.execute(f"alter database {there.name} allow_connections true")
    eventually(lambda: is_equal(there, here), seconds=60)
    eventually(lambda: commands.attached(here.database.dsn())[0].failing_since is None, seconds=30)
    assert any("the attached database crm cannot be followed" in told for told in served.told(here))
    # it is told after what was followed has been committed
    eventually(lambda: "the attached database crm is followed again" in served.told(here))


def test_a_stream_table_over_a_database_that_is_away_is_never_suspended(shop, monkeypatch):
    here = shop()
    with here.database.connect(TRICKLE) as connection:
        table = find(connection, "public.sales")
        for _ in range(8):
            failure = Failure(stream_table(connection, table.id), AttachedFailed("it is away"))
            note_failure(connection, failure, datetime.now(UTC), "scheduler", max_errors=3)
        found = stream_table(connection, table.id)
        assert found.status.value != "SUSPENDED"
        assert found.consecutive_errors == 8


def test_it_loses_nothing_when_its_connections_are_cut_again_and_again(pair, server):
    there, here, _ = pair
    make(here)
    stop = threading.Event()

    def write() -> None:
        chance = random.Random(1)
        with closing(there.database.connect("app", autocommit=True)) as writer:
            while not stop.wait(0.01):
                key = chance.randrange(40)
                writer.execute(
                    chance.choice(
                        [
                            "insert into payments values (%(k)s, %(k)s %% 5, 1) on conflict do nothing",
                            "delete from payments where id = %(k)s",
                            "update payments set customer = %(k)s %% 7, amount = amount + 1 where id < %(k)s",
                        ]
                    ),
                    {"k": key},
                )

    thread = threading.Thread(target=write)
    thread.start()
    try:
        with psycopg.connect(server.dsn(), autocommit=True) as admin:
            for _ in range(10):
                before = refreshes(here)
                admin.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity"
                    " where datname = any (%s) and usename = 'trickle'",
                    ([there.name, here.name],),
                )
                eventually(partial(has_refreshed_since, here, before), seconds=60)
    finally:
        stop.set()
        thread.join()
    eventually(lambda: is_equal(there, here), seconds=60)
