"""The publication decides what is in the log: what was not published for a moment is missing there."""

from __future__ import annotations

import psycopg
import pytest

from pgtrickle.model.stream_table import Action
from pgtrickle.refresh.engine import Engine
from tests.fixtures.databases import Database
from tests.fixtures.sources import Source, SourceTable
from tests.fixtures.stream_tables import StreamTable
from tests.fixtures.wal import decoded_sources, hand_over
from tests.wal.conftest import WalTable

ALTERED = {
    "publishes inserts only": (
        "alter publication pgtrickle set (publish = 'insert')",
        "alter publication pgtrickle set (publish = 'insert, update, delete, truncate')",
    ),
    "has another name": (
        "alter publication pgtrickle rename to other",
        "alter publication other rename to pgtrickle",
    ),
    "lacks the table": (
        "alter publication pgtrickle drop table orders",
        "alter publication pgtrickle add table orders",
    ),
    "has only some rows": (
        "alter publication pgtrickle set table orders where (id > 100)",
        "alter publication pgtrickle set table orders",
    ),
}


@pytest.mark.every_postgres
@pytest.mark.parametrize("how", ALTERED)
def test_a_publication_that_was_altered_for_a_moment(
    full_source: Source, wal_table: WalTable, admin: psycopg.Connection, engine: Engine, how: str
) -> None:
    engine.wal.streams = True
    orders = full_source("orders(id int primary key, amount int)", rows=[(1, 1), (2, 2)])
    table = wal_table("select id, amount from orders")
    alter, restore = ALTERED[how]
    admin.execute(alter)
    orders.change("delete from orders where id = 1")
    admin.execute(restore)
    orders.change("insert into orders values (3, 3)")
    assert table.refresh().action not in {Action.DIFFERENTIAL, Action.NO_DATA}
    table.equals_its_query()


def test_a_published_schema_that_was_taken_away_for_a_moment(
    full_source: Source, wal_table: WalTable, admin: psycopg.Connection
) -> None:
    admin.execute("create publication pgtrickle for tables in schema public")
    orders = full_source("orders(id int primary key, amount int)", rows=[(1, 1), (2, 2)])
    table = wal_table("select id, amount from orders")
    orders.change("update orders set amount = 5 where id = 1")
    assert table.refresh().action is Action.DIFFERENTIAL
    admin.execute("alter publication pgtrickle drop tables in schema public")
    orders.change("delete from orders where id = 1")
    admin.execute("alter publication pgtrickle add tables in schema public")
    assert table.refresh().action not in {Action.DIFFERENTIAL, Action.NO_DATA}
    table.equals_its_query()


@pytest.fixture
def partitioned(full_source: Source) -> SourceTable:
    orders = full_source("orders(id int, amount int, primary key (id)) partition by range (id)")
    orders.change(
        "create table orders_1 partition of orders for values from (0) to (100)",
        "create table orders_2 partition of orders for values from (100) to (200)",
        "grant select, trigger on orders_1, orders_2 to trickle",
        "alter table orders_1 replica identity full",
        "alter table orders_2 replica identity full",
        "insert into orders values (1, 1), (101, 1)",
    )
    return orders


def test_a_partition_cannot_leave_the_log(partitioned: SourceTable, wal_table: WalTable) -> None:
    """What is written to an unlogged table is not in the log, so PostgreSQL refuses to make it one."""
    table = wal_table("select id, amount from orders")
    with pytest.raises(psycopg.Error, match="publication"):
        partitioned.change("alter table orders_1 set unlogged")
    partitioned.change("drop table orders_2", "update orders set amount = 2")
    table.refresh()
    table.equals_its_query()


def test_a_partition_that_left_the_log_for_a_moment(
    partitioned: SourceTable, wal_table: WalTable, admin: psycopg.Connection
) -> None:
    """An administrator has published the table only, so its partitions can be made unlogged."""
    admin.execute("create publication pgtrickle for all tables")
    table = wal_table("select id, amount from orders")
    partitioned.change("alter table orders_1 set unlogged")
    partitioned.change("insert into orders values (2, 2)")
    partitioned.change("alter table orders_1 set logged")
    partitioned.change("insert into orders values (3, 3)")
    assert table.refresh().action not in {Action.DIFFERENTIAL, Action.NO_DATA}
    table.equals_its_query()


def test_a_deferrable_key_is_no_replica_identity(source: Source, app: psycopg.Connection) -> None:
    """PostgreSQL would refuse updates of a published table that has no other one."""
    source("orders(id int primary key deferrable, amount int)", rows=[(1, 1)])
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="replica identity") as refused:
        app.execute("select pgtrickle.create_stream_table('t', 'select id from orders', cdc_mode => 'wal')")
    assert refused.value.diag.message_hint == "Run alter table public.orders replica identity full;"


@pytest.mark.parametrize(
    ("kind", "hint"),
    [
        ("stored", "Run alter publication pgtrickle set (publish_generated_columns = stored)."),
        ("virtual", "Use cdc_mode => 'trigger'."),
    ],
)
def test_a_generated_column_that_is_not_published(
    full_source: Source,
    app: psycopg.Connection,
    admin: psycopg.Connection,
    engine: Engine,
    pg_version: int,
    kind: str,
    hint: str,
) -> None:
    """PostgreSQL would refuse updates, because the replica identity contains it, though no query uses it."""
    if pg_version < 18:
        pytest.skip("generated columns are published from PostgreSQL 18 on")
    admin.execute("create publication pgtrickle")
    admin.execute("alter publication pgtrickle owner to trickle")
    full_source(f"orders(id int primary key, amount int, twice int generated always as (amount * 2) {kind})")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="twice") as refused:
        app.execute(
            "select pgtrickle.create_stream_table('t', 'select id, amount from orders', cdc_mode => 'wal')"
        )
    assert refused.value.diag.message_hint == hint
    app.execute(
        "select pgtrickle.create_stream_table('t', 'select id, amount from orders', cdc_mode => 'auto')"
    )
    hand_over(engine)
    app.execute("insert into orders values (1, 1)")
    app.execute("update orders set amount = 2")


@pytest.mark.every_postgres
def test_a_publication_without_generated_columns_is_enough_for_the_others(
    source: Source, wal_table: WalTable, admin: psycopg.Connection, database: Database
) -> None:
    orders = source(
        "orders(id int primary key, amount int, twice int generated always as (amount * 2) stored)"
    )
    admin.execute("create publication pgtrickle for table orders")
    table = wal_table("select id from orders")
    assert decoded_sources(database) == ["public.orders"]
    orders.change("insert into orders values (1, 1), (2, 2)", "update orders set amount = 5")
    orders.change("update orders set id = 3 where id = 2", "delete from orders where id = 1")
    assert table.refresh().action is Action.DIFFERENTIAL
    table.equals_its_query()


def test_a_stored_generated_column_is_in_the_log(
    full_source: Source, wal_table: WalTable, database: Database, pg_version: int
) -> None:
    if pg_version < 18:
        pytest.skip("generated columns are published from PostgreSQL 18 on")
    orders = full_source(
        "orders(id int primary key, amount int, twice int generated always as (amount * 2) stored)"
    )
    table = wal_table("select id, twice from orders")
    orders.change("insert into orders values (1, 1), (2, 2)", "update orders set amount = 5 where id = 1")
    orders.change("delete from orders where id = 2", "update orders set id = 7")
    assert table.refresh().action is Action.DIFFERENTIAL
    table.equals_its_query()


def test_a_key_is_enough_for_tables_that_only_grow(
    source: Source, app: psycopg.Connection, engine: Engine, database: Database
) -> None:
    """Old rows are not needed then. A change that has one is not lost: the stream table is computed anew."""
    orders = source("orders(id int primary key, amount int)", rows=[(1, 1)])
    query = "select id, amount from orders where amount > 0"
    app.execute(
        "select pgtrickle.create_stream_table('grown', %s, schedule => null, cdc_mode => 'wal',"
        " append_only => true)",
        (query,),
    )
    assert hand_over(engine) == [None]
    table = StreamTable("grown", query, engine, app)
    table.refresh()
    orders.change("insert into orders values (2, 2), (3, -3)")
    assert table.refresh().action is Action.DIFFERENTIAL
    table.equals_its_query()
    orders.change("insert into orders values (4, 4)", "update orders set amount = -1 where id = 2")
    assert table.refresh().action is not Action.DIFFERENTIAL
    table.equals_its_query()
    # the promise is taken back, so old rows are needed from now on
    hand_over(engine)
    assert decoded_sources(database) == []
    orders.change("delete from orders where id = 1", "update orders set amount = 3 where id = 3")
    assert table.refresh().action is Action.DIFFERENTIAL
    table.equals_its_query()
