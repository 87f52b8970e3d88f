"""Stream tables whose sources are captured from the write-ahead log, compared with PostgreSQL's answer."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from pgtrickle.model.stream_table import Action
from pgtrickle.refresh.engine import Engine
from tests.fixtures.databases import APP, Connect, Database
from tests.fixtures.sources import Source
from tests.fixtures.wal import decoded_sources
from tests.wal.conftest import WalTable


def test_changes_arrive_without_triggers(
    full_source: Source, wal_table: WalTable, database: Database, app: psycopg.Connection
) -> None:
    orders = full_source("orders(id int primary key, amount int)", rows=[(1, 10), (2, 5)])
    total = wal_table("select amount, count(*) as orders, sum(id) as ids from orders group by amount")
    assert decoded_sources(database) == ["public.orders"]
    assert app.execute("select count(*) from pg_trigger where tgrelid = 'orders'::regclass").fetchone() == (
        0,
    )
    orders.change("delete from orders where id = 1", "insert into orders values (3, 5)")
    orders.change("update orders set amount = amount + 1 where id = 2")
    assert total.refresh().action is Action.DIFFERENTIAL
    total.equals_its_query()
    orders.change("update orders set id = id + 10, amount = 7")
    assert total.refresh().action is Action.DIFFERENTIAL
    total.equals_its_query()
    assert total.refresh().action is Action.NO_DATA


def test_commits_out_of_order_belong_to_the_window_after_their_commit(
    full_source: Source, wal_table: WalTable, connect: Connect
) -> None:
    orders = full_source("orders(id int primary key, amount int)", rows=[(1, 10)])
    total = wal_table("select sum(amount) as total, count(*) as orders from orders")
    early = connect(APP)
    early.execute("insert into orders values (2, 20)")
    for number in range(3, 6):
        orders.change(f"insert into orders values ({number}, {number})")
        total.refresh()
        total.equals_its_query()
    early.execute("update orders set amount = 0 where id = 3")
    early.commit()
    orders.change("delete from orders where id = 4")
    total.refresh()
    total.equals_its_query()


def test_rolled_back_and_nested_transactions(
    full_source: Source, wal_table: WalTable, connect: Connect
) -> None:
    full_source("orders(id int primary key, amount int)", rows=[(1, 10)])
    total = wal_table("select id, amount from orders where amount > 3")
    writer = connect(APP)
    writer.execute("insert into orders values (2, 20)")
    writer.rollback()
    writer.execute("insert into orders values (3, 30)")
    with writer.transaction():
        writer.execute("update orders set amount = 31 where id = 3")
    with writer.transaction(force_rollback=True):
        writer.execute("delete from orders")
    writer.commit()
    total.refresh()
    total.equals_its_query()


def test_a_prepared_transaction_counts_from_its_commit(
    full_source: Source, wal_table: WalTable, connect: Connect
) -> None:
    orders = full_source("orders(id int primary key, amount int)", rows=[(1, 10)])
    total = wal_table("select sum(amount) as total from orders")
    writer = connect(APP)
    writer.execute("insert into orders values (2, 20)")
    writer.execute("prepare transaction 'later'")
    writer.rollback()
    orders.change("insert into orders values (3, 5)")
    total.refresh()
    total.equals_its_query()
    writer.autocommit = True
    writer.execute("commit prepared 'later'")
    total.refresh()
    total.equals_its_query()


def test_a_truncation_is_a_full_refresh_and_the_next_window_is_not(
    full_source: Source, wal_table: WalTable
) -> None:
    orders = full_source("orders(id int primary key, amount int)", rows=[(1, 10)])
    full_source("more(id int primary key)", rows=[(1,)])
    total = wal_table("select o.id, o.amount from orders o join more m on m.id = o.id", refresh_mode="AUTO")
    orders.change(
        "insert into orders values (2, 2)", "truncate orders, more", "insert into orders values (3, 3)"
    )
    assert total.refresh().action is not Action.DIFFERENTIAL
    total.equals_its_query()
    orders.change("insert into more values (3)")
    assert total.refresh().action is Action.DIFFERENTIAL
    total.equals_its_query()


def test_large_values_that_did_not_change(full_source: Source, wal_table: WalTable) -> None:
    pages = full_source("pages(id int primary key, body text, hits int)")
    pages.change(
        "alter table pages alter body set storage external",
        "insert into pages select n, repeat(md5(n::text), 1000), 0 from generate_series(1, 5) n",
    )
    table = wal_table("select id, md5(body) as body, hits from pages")
    pages.change("update pages set hits = hits + 1", "update pages set id = id + 100 where id = 2")
    pages.change("update pages set body = body || 'x' where id = 3", "delete from pages where id = 4")
    assert table.refresh().action is Action.DIFFERENTIAL
    table.equals_its_query()


def test_partitions_and_moves_between_them(
    full_source: Source, wal_table: WalTable, app: psycopg.Connection
) -> None:
    orders = full_source("orders(id int, amount int, primary key (id)) partition by range (id)")
    orders.change(
        "create table orders_1 (amount int, id int not null)",
        "grant select, trigger on orders_1 to trickle",
        "alter table orders attach partition orders_1 for values from (0) to (100)",
        "create table orders_2 partition of orders for values from (100) to (200)",
        "grant select, trigger on orders_2 to trickle",
        "alter table orders_1 replica identity full",
        "alter table orders_2 replica identity full",
        "insert into orders values (1, 10), (101, 20)",
    )
    table = wal_table("select amount, sum(id) as ids from orders group by amount")
    orders.change("update orders set id = id + 50", "insert into orders values (2, 10), (102, 20)")
    orders.change("update orders set id = 160 where id = 2", "delete from orders where id = 51")
    assert table.refresh().action is Action.DIFFERENTIAL
    table.equals_its_query()
    orders.change("truncate orders_1", "insert into orders values (3, 7)")
    table.refresh()
    table.equals_its_query()


def test_trigger_and_wal_sources_in_one_query(
    full_source: Source, source: Source, wal_table: WalTable, database: Database
) -> None:
    orders = full_source("orders(id int primary key, customer int, amount int)", rows=[(1, 1, 10), (2, 2, 5)])
    customers = source("customers(id int primary key, name text)", rows=[(1, "ada"), (2, "bob")])
    table = wal_table(
        "select c.name, sum(o.amount) as total from orders o join customers c on c.id = o.customer"
        " group by c.name",
        cdc_mode="auto",
    )
    assert decoded_sources(database) == ["public.orders"]
    orders.change("insert into orders values (3, 1, 7)", "update customers set name = 'eve' where id = 1")
    customers.change("insert into customers values (3, 'joe')", "update orders set customer = 3 where id = 2")
    assert table.refresh().action is Action.DIFFERENTIAL
    table.equals_its_query()


@pytest.mark.parametrize("is_late", [False, True])
def test_rows_that_are_decoded_after_the_snapshot(
    full_source: Source, wal_table: WalTable, engine: Engine, monkeypatch: pytest.MonkeyPatch, is_late: bool
) -> None:
    """The snapshot sees the transactions, but not the rows that were decoded after it."""
    orders = full_source("orders(id int primary key, amount int)", rows=[(1, 10)])
    other = wal_table("select id, amount from orders o where amount > 1")
    table = wal_table("select sum(amount) as total, count(*) as orders from orders")
    orders.change("insert into orders values (2, 20)", "update orders set amount = 11 where id = 1")
    if not is_late:
        engine.wal.decode()
    catch_up: Callable[[], None] = engine.wal.catch_up

    def write_more() -> None:
        # after the snapshot: decoded now, but not a part of this window
        orders.change("insert into orders values (3, 100)", "delete from orders where id = 2")
        catch_up()

    with monkeypatch.context() as patched:
        patched.setattr(type(engine.wal), "catch_up", lambda self: write_more())
        assert table.refresh().action is Action.DIFFERENTIAL
    assert table.rows() == [(31, 2)]
    for found in (table, other):
        assert found.refresh().action is Action.DIFFERENTIAL
        found.equals_its_query()


def test_values_of_many_types_survive(
    full_source: Source, wal_table: WalTable, app: psycopg.Connection
) -> None:
    values = full_source(
        "kept(id int primary key, f float8, n numeric, t timestamptz, i interval, b bytea, j jsonb,"
        " a text[], d date, m money, x text, u uuid, r int4range)"
    )
    table = wal_table("select * from kept")
    app.execute("set datestyle = 'German'; set intervalstyle = 'sql_standard'; set extra_float_digits = -5")
    values.change(
        "insert into kept values (1, 0.1::float8 + 0.2, 1.10, '2024-02-29 12:00+02',"
        " '1 mon -3 days 04:05:06.7',"
        r" '\x00ff5c', '{\"a\": [1, null]}', array['a,b', null, 'c\"d', E'tab\there'], 'infinity', 12.34,"
        r" E'line\nbreak \\ back\\slash \\N', gen_random_uuid(), '[1,5)')".replace('\\"', '"'),
        "insert into kept (id, x, a) values (2, '', '{}'), (3, null, null)",
    )
    values.change("update kept set x = x || 'é' where id < 3", "update kept set n = 1.100 where id = 1")
    assert table.refresh().action is Action.DIFFERENTIAL
    table.equals_its_query()
    app.execute("set datestyle = 'ISO'")


def test_a_column_that_is_altered_in_the_middle_of_the_stream(
    full_source: Source, wal_table: WalTable
) -> None:
    orders = full_source("orders(id int primary key, amount int, note text)", rows=[(1, 10, "a")])
    table = wal_table("select id, amount from orders", refresh_mode="AUTO")
    orders.change("insert into orders values (2, 20, 'b')")
    orders.change(
        "alter table orders add column more int default 5", "insert into orders values (3, 30, 'c', 1)"
    )
    orders.change("alter table orders drop column note", "update orders set amount = amount + 1")
    table.refresh()
    table.equals_its_query()
    orders.change("update orders set amount = 7 where id = 1")
    table.refresh()
    table.equals_its_query()


def test_the_layers_above_follow_in_the_same_refresh(
    full_source: Source, wal_table: WalTable, app: psycopg.Connection, engine: Engine
) -> None:
    orders = full_source("orders(id int primary key, amount int)", rows=[(1, 10), (2, 20)])
    lower = wal_table("select amount, count(*) as n from orders group by amount")
    upper = wal_table(f"select max(n) as most from {lower.name}", cdc_mode="auto")
    orders.change("update orders set amount = 20")
    lower.refresh()
    upper.refresh()
    upper.equals_its_query()
    lower.equals_its_query()
