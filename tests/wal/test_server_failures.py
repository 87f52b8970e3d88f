"""What happens to the server under the decoder: restarts, settings, a standby that takes over."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import psycopg
import pytest

from pgtrickle.embedded import Server
from pgtrickle.model.errors import PgTrickleError
from pgtrickle.model.stream_table import Action
from pgtrickle.pipeline.session import Spark
from pgtrickle.refresh.engine import Engine
from tests.fixtures.databases import APP, TEMPLATE, TRICKLE, Database, allow_wal, create_database, prepare
from tests.fixtures.servers import LOGICAL, new_server
from tests.fixtures.stream_tables import StreamTable
from tests.fixtures.waiting import eventually
from tests.fixtures.wal import decoded_sources, drop_slot_by_hand, hand_over
from tests.recovery.clusters import streaming_standby

pytestmark = pytest.mark.slow

QUERY = "select amount, count(*) as n, sum(id) as ids from orders group by amount"
STOPPED_SECONDS = 20
"""Less than `wal_sender_timeout`, after which the server would go on anyway."""
Shop = tuple[Server, Database, Engine, StreamTable]


@pytest.fixture
def shop(pg_version: int, spark: Spark) -> Iterator[Shop]:
    with open_shop(pg_version, spark) as shop:
        yield shop


@contextmanager
def open_shop(version: int, spark: Spark, **settings: str) -> Iterator[Shop]:
    """A server of a test's own, with a stream table whose source is captured from the log."""
    with new_server(version, **LOGICAL, **settings) as server:
        prepare(server)
        allow_wal(server)
        database = create_database(server, "shop", TEMPLATE)
        with serving(database, spark) as (engine, app):
            app.execute("create table orders (id int primary key, amount int)")
            app.execute("alter table orders replica identity full")
            app.execute(f"grant select on orders to {TRICKLE}")
            app.execute(
                "select pgtrickle.create_stream_table('totals', %s, schedule => null, cdc_mode => 'wal')",
                (QUERY,),
            )
            assert not any(hand_over(engine))
            table = StreamTable("totals", QUERY, engine, app)
            table.refresh()
            app.execute("insert into orders select n, n % 3 from generate_series(1, 20) n")
            assert table.refresh().action is Action.DIFFERENTIAL
            yield server, database, engine, table


@contextmanager
def serving(database: Database, spark: Spark) -> Iterator[tuple[Engine, psycopg.Connection]]:
    """An engine and an application."""
    engine = Engine(database.dsn(TRICKLE), lambda: spark)
    engine.wal.streams = True
    with psycopg.connect(database.dsn(APP), autocommit=True) as app:
        yield engine, app
    engine._spark = None
    engine.close()


def again(shop: Shop, statement: str) -> tuple[StreamTable, psycopg.Connection]:
    """A new application on the server, which writes."""
    _, database, engine, _ = shop
    app = psycopg.connect(database.dsn(APP), autocommit=True)
    app.execute(statement)
    return StreamTable("totals", QUERY, engine, app), app


@pytest.mark.parametrize("how", ["restart", "kill"])
def test_a_server_that_is_restarted_in_the_middle_of_decoding(
    shop: Shop, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, _, engine, table = shop
    table.connection.execute("update orders set amount = 7 where id < 5")

    # it waits for those who read its log, until they notice
    stopping = threading.Thread(target=server.kill if how == "kill" else server.stop)

    def stop(*_: object) -> None:
        stopping.start()
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("pgtrickle.capture.wal.store._store_position", stop)
        with pytest.raises(KeyboardInterrupt):
            engine.wal.decode()
    stopping.join()
    server.start()
    table, app = again(shop, "delete from orders where id = 3")
    with app:
        assert _eventual(table) is Action.DIFFERENTIAL
        table.equals_its_query()


def test_log_that_the_server_has_removed(shop: Shop) -> None:
    """max_slot_wal_keep_size: the server gives the slot up, and ends whoever reads it."""
    server, database, _, table = shop
    with psycopg.connect(server.dsn("shop"), autocommit=True) as admin:
        admin.execute("alter system set max_slot_wal_keep_size = '16MB'")
        admin.execute("select pg_reload_conf()")
        for number in range(100, 106):
            admin.execute("insert into orders values (%s, 1)", (number,))
            admin.execute("select pg_switch_wal()")
        admin.execute("checkpoint")
        row = admin.execute("select wal_status from pg_replication_slots").fetchone()
        assert row == ("lost",)
    assert _eventual(table) not in {Action.DIFFERENTIAL, Action.NO_DATA}
    table.equals_its_query()
    assert decoded_sources(database) == []
    table.connection.execute("update orders set amount = 1")
    assert _eventual(table) is Action.DIFFERENTIAL
    table.equals_its_query()


def test_wal_level_that_is_turned_back(shop: Shop) -> None:
    """The server does not start with a logical slot then, so an administrator drops it first."""
    server, database, engine, table = shop
    engine.wal.close()
    with psycopg.connect(server.dsn("shop"), autocommit=True) as admin:
        drop_slot_by_hand(admin)
        admin.execute("insert into orders values (100, 1)")
    server._settings["wal_level"] = "replica"
    server.restart()
    table, app = again(shop, "insert into orders values (101, 1)")
    with app:
        assert _eventual(table) not in {Action.DIFFERENTIAL, Action.NO_DATA}
        table.equals_its_query()
        assert decoded_sources(database) == []
        row = app.execute("select reason from pgtrickle.check_cdc_health()").fetchone()
        assert row is not None
        assert "wal_level is replica" in row[0]
        app.execute("delete from orders where id = 1")
        assert _eventual(table) is Action.DIFFERENTIAL
        table.equals_its_query()


@pytest.mark.parametrize("keeps_slot", [False, True])
def test_a_standby_that_takes_over(
    shop: Shop, spark: Spark, pg_version: int, keeps_slot: bool, standby_of: Callable[[Server], Server]
) -> None:
    if keeps_slot and pg_version < 17:
        pytest.skip("slots survive a failover from PostgreSQL 17 on")
    server, _, engine, table = shop
    standby = standby_of(server)
    table.connection.execute("insert into orders values (50, 5)")
    assert _eventual(table) is Action.DIFFERENTIAL
    with (
        psycopg.connect(server.dsn(), autocommit=True) as primary,
        psycopg.connect(standby.dsn(), autocommit=True) as admin,
    ):

        def is_kept() -> bool:
            """The standby keeps the slot once that has moved on the primary, as it does with every change."""
            table.connection.execute("update orders set amount = amount + 1 where id = 50")
            primary.execute("select pg_log_standby_snapshot()")
            engine.wal.decode()
            row = admin.execute(
                "select exists (select from pg_replication_slots where synced and not temporary)"
            ).fetchone()
            return row == (True,)

        if keeps_slot:
            eventually(is_kept)
        table.connection.execute("update orders set amount = 2 where id = 50")
        (end,) = primary.execute("select pg_current_wal_insert_lsn()::text").fetchone() or ("",)
        primary.execute("checkpoint")
        eventually(lambda: _is(admin, f"select pg_last_wal_replay_lsn() >= '{end}'"))
        engine.wal.close()
        server.kill()
        assert admin.execute("select pg_promote(true, 60)").fetchone() == (True,)
    with serving(Database(standby, "shop"), spark) as (other, app):
        followed = StreamTable("totals", QUERY, other, app)
        app.execute("delete from orders where id = 2")
        action = _eventual(followed)
        assert (action is Action.DIFFERENTIAL) == keeps_slot
        followed.equals_its_query()
        app.execute("update orders set amount = 9 where id < 9")
        assert _eventual(followed) is Action.DIFFERENTIAL
        followed.equals_its_query()


@pytest.fixture
def standby_of(pg_version: int) -> Iterator[Callable[[Server], Server]]:
    """Starts a standby of a server, which receives its log."""
    with ExitStack() as stack:
        yield lambda server: stack.enter_context(streaming_standby(server, pg_version, LOGICAL))


def _eventual(table: StreamTable) -> Action:
    """Refresh; sessions that a restart has ended are noticed first."""
    found: list[Action] = []

    def is_refreshed() -> bool:
        try:
            found.append(table.refresh().action)
        except (PgTrickleError, psycopg.OperationalError):
            return False
        return True

    eventually(is_refreshed)
    return found[0]


def _is(admin: psycopg.Connection, query: str) -> bool:
    return admin.execute(query).fetchone() == (True,)


def test_a_server_that_refuses_replication_connections(pg_version: int, spark: Spark) -> None:
    """The log is read by SQL then, and people can see why."""
    with open_shop(pg_version, spark, max_wal_senders="0") as (_, _, engine, table):
        assert not engine.wal.is_streaming
        table.connection.execute("update orders set amount = 4 where id < 7")
        assert table.refresh().action is Action.DIFFERENTIAL
        table.equals_its_query()
        row = table.connection.execute("select cdc_mode, reason from pgtrickle.check_cdc_health()").fetchone()
        assert row is not None
        assert row[0] == "wal"
        assert row[1].startswith("the log is read by SQL: ")
        assert "max_wal_senders" in row[1]


def test_a_server_stops_while_its_log_is_followed(shop: Shop) -> None:
    """It waits until everything that it has sent is confirmed, or until the connection is closed."""
    server, _, engine, _ = shop
    stop = threading.Event()

    def follow() -> None:
        while not stop.is_set():
            with suppress(PgTrickleError):
                engine.wal.follow(0.1)

    following = threading.Thread(target=follow)
    following.start()
    try:
        began = time.monotonic()
        server.stop()
        assert time.monotonic() - began < STOPPED_SECONDS
        server.start()
        table, app = again(shop, "delete from orders where id = 3")
        with app:
            assert _eventual(table) is Action.DIFFERENTIAL
            table.equals_its_query()
    finally:
        stop.set()
        following.join()
