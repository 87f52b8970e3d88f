"""Which triggers a table needs follows from what it is: a partition, a child, a subscription's target."""

from __future__ import annotations

from contextlib import closing

import psycopg
import pytest

from pgtrickle.capture.repair import capture_gaps, missing_triggers, repair, retry_capture
from pgtrickle.catalog.install import install
from pgtrickle.model.errors import Busy
from tests.fixtures.databases import APP, TRICKLE
from tests.fixtures.servers import new_server
from tests.fixtures.waiting import eventually

pytestmark = pytest.mark.every_postgres

BECOMING = (
    pytest.param(
        "create table roots(id int, day int) partition by range (day);"
        "alter table roots attach partition orders for values from (0) to (10)",
        "roots",
        id="a partition",
    ),
    pytest.param(
        "create table roots(id int, day int); alter table orders inherit roots", "roots", id="a child"
    ),
    pytest.param(
        "create table roots(id int, day int) partition by list (day);"
        "create table middle(id int, day int) partition by range (day);"
        "alter table middle attach partition orders for values from (0) to (10);"
        "alter table roots attach partition middle for values in (1, 2, 3)",
        "roots",
        id="a partition of a partition",
    ),
    pytest.param(
        "create table roots(id int, day int); create table kids() inherits (orders, roots);"
        "grant select, trigger on kids to trickle; insert into kids values (5, 1)",
        "roots",
        id="the parent of a child that has another parent",
    ),
)


@pytest.mark.parametrize(("ddl", "root"), BECOMING)
def test_a_table_that_becomes_more_than_a_table_loses_no_changes(source, follow, connection, app, ddl, root):
    orders = source("orders(id int, day int)", rows=[(1, 1), (2, 2)])
    reader = follow("orders")
    for statement in ddl.split(";"):
        app.execute(statement)
    orders.change("insert into orders values (3, 1)")
    assert reader.relid in capture_gaps(connection)
    assert missing_triggers(connection)
    connection.rollback()
    repair(connection, reader.relid)
    assert capture_gaps(connection) == {}
    connection.rollback()
    reader.starts_over()
    orders.change(
        f"update {root} set id = id + 10 where id = 1",
        f"delete from {root} where id = 2",
        "insert into orders values (4, 1)",
        "update orders set id = id + 100 where id = 4",
    )
    reader.catches_up()
    assert not reader.was_truncated
    orders.change("truncate orders")
    reader.catches_up()
    assert reader.was_truncated


def test_a_child_of_a_child_that_came_later_is_captured(source, follow, connection, app):
    orders = source("orders(id int)")
    app.execute("create table kids() inherits (orders)")
    app.execute("grant select, trigger on kids to trickle")
    reader = follow("orders")
    app.execute("create table grandkids() inherits (kids)")
    app.execute("grant select, trigger on grandkids to trickle")
    assert reader.relid in capture_gaps(connection)
    connection.rollback()
    repair(connection, reader.relid)
    reader.starts_over()
    orders.change("insert into grandkids values (1)", "update orders set id = 2", "delete from kids")
    reader.catches_up()


def test_a_partition_attached_with_rows_and_triggers_of_its_own_is_captured_for_both(
    source, follow, connection, app
):
    source("events(id int, day int) partition by range (day)")
    loose = source("loose(id int, day int)", rows=[(1, 1)])
    both = follow("events"), follow("loose")
    app.execute("alter table events attach partition loose for values from (0) to (10)")
    for reader in both:
        repair(connection, reader.relid)
        reader.starts_over()
    assert capture_gaps(connection) == {}
    loose.change(
        "insert into events values (2, 2)", "update loose set id = 7 where id = 1", "delete from events"
    )
    for reader in both:
        reader.catches_up()


def test_a_detached_partition_neither_fails_nor_records(source, follow, connection, app):
    events = source("events(id int, day int) partition by range (day)")
    app.execute("create table events_1 partition of events for values from (0) to (10)")
    app.execute("grant select, trigger on events_1 to trickle")
    reader = follow("events")
    app.execute("alter table events detach partition events_1")
    events.change(
        "insert into events_1 values (1, 1)",
        "update events_1 set id = 2",
        "alter table events_1 drop column day",
    )
    events.change("delete from events_1", "truncate events_1")
    assert reader.changes() == {}
    assert not reader.is_marked()


def test_a_table_that_is_a_plain_table_again_is_captured_by_statements_again(source, follow, connection, app):
    orders = source("orders(id int, day int)")
    reader = follow("orders")
    app.execute("create table roots(id int, day int)")
    app.execute("alter table orders inherit roots")
    repair(connection, reader.relid)
    app.execute("alter table orders no inherit roots")
    repair(connection, reader.relid)
    levels = connection.execute("select trigger_level from pgtrickle.pgt_sources").fetchall()
    connection.rollback()
    assert levels == [("statement",)]
    orders.change("insert into orders values (1, 1)")
    assert reader.changes() == {"(1,1)": 1}


def test_a_trigger_switched_off_on_one_partition_is_switched_on(source, follow, connection, app):
    orders = source("orders(id int, day int) partition by range (day)")
    app.execute("create table orders_1 partition of orders for values from (0) to (10)")
    app.execute("create table roots(id int, day int) partition by list (day)")
    app.execute("alter table roots attach partition orders for values in (1, 2)")
    app.execute("grant select, trigger on orders_1 to trickle")
    reader = follow("orders")
    app.execute("alter table orders_1 disable trigger all")
    assert reader.relid in capture_gaps(connection)
    connection.rollback()
    repair(connection, reader.relid)
    orders.change("insert into roots values (1, 1)")
    assert reader.changes() == {"(1,1)": 1}


def test_where_subscriptions_cannot_be_seen_rows_are_wanted(source, follow, connection, admin, app):
    source("orders(id int)")
    level = "select pgtrickle_internal.trigger_level('orders'::regclass)"
    assert connection.execute(level).fetchone() == ("statement",)
    connection.rollback()
    admin.execute("revoke select on pg_subscription_rel from public")
    assert connection.execute(level).fetchone() == ("row",)
    # the rest of pgtrickle does without them too
    app.execute("select pgtrickle.create_stream_table('seen', 'select id from orders')")
    connection.execute("select * from pgtrickle_internal.poll_ground(null)")


@pytest.fixture
def publisher(pg_version):
    """A server that replicates logically, with a table and a publication in one database."""
    with new_server(pg_version, wal_level="logical") as server:
        with psycopg.connect(server.dsn(), autocommit=True) as admin:
            for role in (TRICKLE, APP):
                admin.execute(f"create role {role} login password '{server.password}'")
            for name in ("upstream", "downstream"):
                admin.execute(f"create database {name}")
            admin.execute("grant create, temporary on database downstream to trickle")
        yield server


@pytest.mark.own_server
def test_what_a_subscription_brings_later_is_captured(publisher):
    with (
        closing(psycopg.connect(publisher.dsn("upstream"), autocommit=True)) as upstream,
        closing(psycopg.connect(publisher.dsn("downstream"), autocommit=True)) as downstream,
        closing(psycopg.connect(publisher.dsn("downstream", TRICKLE))) as connection,
    ):
        install(connection)
        for side in (upstream, downstream):
            side.execute("create table orders(id int primary key)")
        downstream.execute("grant select, trigger on orders to trickle")
        downstream.execute("select pgtrickle.create_stream_table('s', 'select id from orders')")
        upstream.execute("create publication p for table orders")
        upstream.execute("select pg_create_logical_replication_slot('s', 'pgoutput')")
        downstream.execute(
            f"create subscription s connection '{publisher.dsn('upstream')}' publication p"
            " with (create_slot = false, slot_name = 's')"
        )
        (source,) = capture_gaps(connection)
        connection.commit()
        with pytest.raises(Busy):
            repair(connection, source)
        # only the owner of a table can let its triggers fire for replicated rows
        eventually(lambda: "their owner has to run: " in (retry_capture(connection, source) or ""))
        gap = capture_gaps(connection)[source]
        connection.commit()
        downstream.execute(gap.partition("their owner has to run: ")[2])
        assert retry_capture(connection, source) is None
        assert capture_gaps(connection) == {}
        connection.commit()
        upstream.execute("insert into orders values (1), (2)")
        upstream.execute("delete from orders where id = 1")
        buffer = f"pgtrickle_changes.changes_{source}_0"
        eventually(
            lambda: (
                connection.execute(f"select weight, c1 from {buffer} order by weight, c1").fetchall()
                == [(-1, 1), (1, 1), (1, 2)]
            )
        )
        connection.commit()
        downstream.execute("alter subscription s disable")
        downstream.execute("alter subscription s set (slot_name = none)")
        downstream.execute("drop subscription s")
        eventually(lambda: upstream.execute("select active from pg_replication_slots").fetchone() == (False,))
        upstream.execute("select pg_drop_replication_slot('s')")
