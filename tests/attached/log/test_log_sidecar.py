"""A sidecar follows the log of a database that it does not serve, whatever happens to both."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import closing
from functools import partial

import psycopg
import pytest

from pgtrickle.capture.attached.log.server import PUBLICATION
from pgtrickle.commands import attached as commands
from pgtrickle.commands.define import create
from pgtrickle.embedded import SUPERUSER, Server
from tests.attached.log.conftest import OURS, READER, create_reader
from tests.attached.test_sidecar import has_refreshed_since, refreshes
from tests.databases.conftest import Shop, run_fleet, shop
from tests.fixtures.databases import TRICKLE
from tests.fixtures.servers import LOGICAL, new_server
from tests.fixtures.waiting import eventually

__all__ = ["run_fleet", "shop"]

pytestmark = [pytest.mark.database, pytest.mark.slow]

QUERY = "select customer, count(*) as n, sum(amount) as total from crm.public.payments group by customer"


@pytest.fixture
def source(pg_version: int) -> Iterator[Server]:
    """A server of its own with the table payments, on which nothing of ours is installed."""
    with new_server(pg_version, **LOGICAL) as server:
        create_reader(server)
        with psycopg.connect(server.dsn(), autocommit=True) as admin:
            admin.execute("create table payments (id int primary key, customer int, amount int)")
            admin.execute(f"grant select on payments to {READER}")
            admin.execute(
                f"create publication {PUBLICATION} for all tables with (publish_via_partition_root = true)"
            )
        yield server
        with psycopg.connect(server.dsn(), autocommit=True) as admin:
            assert admin.execute(OURS).fetchall() == []


@pytest.fixture
def follow(source: Server, shop, run_fleet, tmp_path):
    """Starts a sidecar that serves a database, which reads payments of the other server as crm."""

    def start(**options: object) -> Shop:
        here: Shop = shop()
        with closing(here.database.connect(SUPERUSER, autocommit=True)) as admin:
            admin.execute("grant create on schema public to trickle")
        secret, config = tmp_path / "password", tmp_path / "databases.toml"
        secret.write_text(source.password)
        config.write_text(
            f'[database.here]\ndsn = "dbname={here.name}"\n[database.customers]\nserved = false\n'
            f'dsn = "host=127.0.0.1 port={source.port} dbname=postgres user={READER}"\n'
            f'password = {{ file = "{secret}" }}\n'
        )
        run_fleet(here.served(), config=str(config), **options)
        commands.attach(here.database.dsn(), "crm", "customers", "wal")
        create(here.database.dsn(), "by_customer", QUERY, {"refresh_mode": "FULL", "schedule": "100ms"})
        return here

    return start


def is_equal(source: Server, here: Shop) -> bool:
    with (
        closing(here.database.connect(TRICKLE, autocommit=True)) as reader,
        closing(psycopg.connect(source.dsn(), autocommit=True)) as there,
    ):
        shown = reader.execute("select * from by_customer").fetchall()
        real = there.execute(QUERY.replace("crm.public.", "")).fetchall()
        return sorted(shown) == sorted(real)


def test_it_loses_nothing_when_connections_and_the_other_server_are_killed(follow, source, server):
    here = follow()
    stop = threading.Event()

    def write() -> None:
        chance = random.Random(1)
        writer: psycopg.Connection | None = None
        while not stop.wait(0.01):
            key = chance.randrange(40)
            statement = chance.choice(
                [
                    "insert into payments values (%(k)s, %(k)s %% 5, 1) on conflict do nothing",
                    "delete from payments where id = %(k)s",
                    "update payments set customer = %(k)s %% 7, amount = amount + 1 where id < %(k)s",
                    "update payments set id = id + 100 where id = %(k)s and not exists"
                    " (select from payments where id = %(k)s + 100)",
                ]
            )
            try:
                writer = writer or psycopg.connect(source.dsn(), autocommit=True)
                writer.execute(statement, {"k": key})
            except psycopg.OperationalError:
                writer = None
        if writer is not None:
            writer.close()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for number in range(10):
            before = refreshes(here)
            if number % 3 == 2:
                source.kill()
                source.start()
            for dsn in (source.dsn(), server.dsn()):
                with psycopg.connect(dsn, autocommit=True) as admin:
                    admin.execute(
                        "select pg_terminate_backend(pid) from pg_stat_activity where usename = %s or"
                        " (datname = %s and usename = 'trickle')",
                        (READER, here.name),
                    )
            eventually(partial(has_refreshed_since, here, before), seconds=60)
    finally:
        stop.set()
        thread.join()
    eventually(lambda: is_equal(source, here), seconds=60)
    (status,) = commands.attached(here.database.dsn())
    assert (status.cdc_mode, status.frontier) == ("wal", None)
    assert status.position is not None


def test_a_slot_that_holds_back_too_much_is_given_up_and_its_tables_are_compared(follow, source):
    here = follow(slot_lag_warning_threshold_mb=1, max_slot_wal_mb=4)
    with closing(psycopg.connect(source.dsn(), autocommit=True)) as writer:
        writer.execute("insert into payments select g, g, g from generate_series(1, 9) g")
        eventually(lambda: is_equal(source, here), seconds=60)
        with psycopg.connect(source.dsn()) as long:
            # the slot can restart no later than where this transaction began
            long.execute("insert into payments select g, 1, 1 from generate_series(100, 60000) g")
            writer.execute("update payments set amount = 0 where id < 5")
            eventually(lambda: "slot_given_up" in _alerts(here), seconds=60)
            writer.execute("delete from payments where id = 9")
            long.commit()
        eventually(lambda: is_equal(source, here), seconds=90)


def _alerts(here: Shop) -> list[str]:
    with closing(here.database.connect(TRICKLE, autocommit=True)) as reader:
        rows = reader.execute(
            "select event from pgtrickle.pgt_alerts where event like 'slot%' and details ->> 'alias' = 'crm'"
            " order by alert_id"
        )
        return [event for (event,) in rows]
