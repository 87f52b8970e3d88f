"""The log arrives through a replication connection, as a sidecar reads it."""

from __future__ import annotations

import psycopg
import pytest

from pgtrickle.model.stream_table import Action
from pgtrickle.refresh.engine import Engine
from tests.fixtures.databases import APP, Connect
from tests.fixtures.sources import Source
from tests.wal.conftest import WalTable


@pytest.fixture(autouse=True)
def streaming(engine: Engine) -> None:
    engine.wal.streams = True


def test_changes_arrive_through_a_stream(
    full_source: Source, wal_table: WalTable, engine: Engine, app: psycopg.Connection
) -> None:
    orders = full_source("orders(id int primary key, amount int)", rows=[(1, 10), (2, 5)])
    total = wal_table("select amount, count(*) as orders, sum(id) as ids from orders group by amount")
    for number in range(3, 9):
        orders.change(
            f"insert into orders values ({number}, 5)", "update orders set amount = amount + 1 where id < 3"
        )
        assert total.refresh().action is Action.DIFFERENTIAL
        total.equals_its_query()
    app.execute("set synchronous_commit = off")
    orders.change("delete from orders where id = 1", "alter table orders add column note text")
    orders.change("insert into orders values (20, 3, 'a')")
    total.refresh()
    total.equals_its_query()
    assert total.refresh().action is Action.NO_DATA
    assert engine.wal.is_streaming, engine.wal.refusal


def test_a_large_transaction_is_kept_aside_until_it_commits(
    full_source: Source, wal_table: WalTable, engine: Engine, connect: Connect, admin: psycopg.Connection
) -> None:
    admin.execute("alter system set logical_decoding_work_mem = '64kB'")
    admin.execute("select pg_reload_conf()")
    orders = full_source("orders(id int primary key, amount int)", rows=[(1, 10)])
    total = wal_table("select amount, count(*) as n, sum(id) as ids from orders group by amount")
    large = connect(APP)
    large.execute("insert into orders select n, n % 5 from generate_series(10, 5000) n")
    with large.transaction(force_rollback=True):
        large.execute("delete from orders where id > 100")
        large.execute("insert into orders select n, 77 from generate_series(10000, 15000) n")
    orders.change("insert into orders values (2, 2)")
    assert total.refresh().action is Action.DIFFERENTIAL
    total.equals_its_query()
    with large.transaction():
        large.execute("update orders set amount = 9 where id between 50 and 3000")
    lost = connect(APP)
    lost.execute("insert into orders select n, 8 from generate_series(20000, 25000) n")
    orders.change("insert into orders values (3, 2)")
    total.refresh()
    total.equals_its_query()
    large.commit()
    lost.rollback()
    orders.change("insert into orders values (4, 4)")
    assert total.refresh().action is Action.DIFFERENTIAL
    total.equals_its_query()
    row = admin.execute(
        "select stream_txns > 0 from pg_stat_replication_slots where slot_name ="
        " (select slot from pgtrickle.pgt_wal)"
    ).fetchone()
    assert row == (True,)


@pytest.mark.every_postgres
@pytest.mark.parametrize("is_rolled_back", [True, False])
@pytest.mark.parametrize(
    "alter", ["alter table orders add column more int", "alter table orders replica identity default"]
)
def test_a_definition_that_changes_within_a_large_transaction(
    full_source: Source,
    wal_table: WalTable,
    connect: Connect,
    admin: psycopg.Connection,
    alter: str,
    is_rolled_back: bool,
) -> None:
    """The server describes the table while the transaction runs, also in a part that is rolled back."""
    admin.execute("alter system set logical_decoding_work_mem = '64kB'")
    admin.execute("select pg_reload_conf()")
    orders = full_source("orders(id int primary key, amount int)", rows=[(1, 10), (2, 20)])
    total = wal_table(
        "select amount, count(*) as n, sum(id) as ids from orders group by amount", refresh_mode="AUTO"
    )
    large = connect(APP)
    with large.transaction():
        large.execute("insert into orders select n, n % 5 from generate_series(10, 3000) n")
        with large.transaction(force_rollback=is_rolled_back):
            large.execute(alter)
            large.execute("update orders set amount = 7 where id > 500")
        large.execute("update orders set amount = 9 where id between 50 and 2500")
        large.execute("delete from orders where id % 7 = 0")
    large.commit()
    orders.change("update orders set amount = 3 where id = 1", "delete from orders where id = 2")
    total.refresh()
    total.equals_its_query()
    orders.change("alter table orders replica identity full")
    total.refresh()
    orders.change("update orders set amount = 4 where id < 100", "delete from orders where id = 12")
    assert total.refresh().action is Action.DIFFERENTIAL
    total.equals_its_query()
