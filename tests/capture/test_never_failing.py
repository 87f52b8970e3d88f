"""Whatever somebody removes or revokes, the application goes on writing, and the gap is repaired."""

from __future__ import annotations

from contextlib import closing, suppress

import psycopg
import pytest
from psycopg import sql

from pgtrickle.capture.repair import capture_gaps, repair
from tests.fixtures.databases import APP, TEMPLATE, TRICKLE, create_database
from tests.fixtures.servers import new_server

pytestmark = pytest.mark.every_postgres

REMOVALS = (
    "drop table pgtrickle_changes.changes_{id}_0",
    "drop table pgtrickle_changes.changes_{id}_0, pgtrickle_changes.changes_{id}_1",
    "alter table pgtrickle_changes.changes_{id}_0 drop column c1",
    "alter table pgtrickle_changes.changes_{id}_0 drop column weight",
    "alter table pgtrickle_changes.changes_{id}_0 alter column c1 type text",
    "drop table pgtrickle_changes.touched_0",
    "drop table pgtrickle_changes.touched_0, pgtrickle_changes.touched_1",
    "alter table pgtrickle_changes.touched_1 drop column source",
    "alter table pgtrickle_changes.touched_0 drop column source",
    "drop function pgtrickle_changes.capture_state",
    "drop function pgtrickle_changes.has_columns",
    "drop function pgtrickle_changes.capture_{id} cascade",
    "revoke all on pgtrickle_changes.changes_{id}_0 from trickle",
    "revoke all on pgtrickle_changes.touched_0, pgtrickle_changes.touched_1 from trickle",
    "revoke all on schema pgtrickle_changes from trickle",
    "revoke all on function pgtrickle_changes.capture_state from trickle",
    "alter function pgtrickle_changes.capture_{id} owner to app",
    "drop schema pgtrickle_changes cascade",
    "drop trigger pgtrickle_{id}_insert on orders",
)
"""What a superuser may do to us; `{id}` is the source."""

WRITES = (
    "insert into orders values (1, 10)",
    "update orders set amount = 11",
    "delete from orders where id = 2",
    "truncate orders",
    "insert into orders values (3, 30)",
)


def write_all(writer):
    for statement in WRITES:
        writer.execute(statement)
        writer.commit()


@pytest.mark.parametrize("level", ["statement", "row"])
def test_writes_go_on_whatever_is_removed_and_what_is_missing_is_made_again(
    source, follow, admin, connect, connection, level
):
    heir = " inherits (parents)" if level == "row" else ""
    source("parents()")
    orders = source(f"orders(id int, amount int){heir}", rows=[(2, 5)])
    reader = follow("orders")
    writer = connect(APP)
    for removal in REMOVALS:
        write_all(writer)
        admin.execute(removal.format(id=reader.relid))
        write_all(writer)
        assert reader.relid in capture_gaps(connection), removal
        connection.rollback()
        if "owner" in removal:
            admin.execute(f"alter function pgtrickle_changes.capture_{reader.relid} owner to {TRICKLE}")
        repair(connection, reader.relid)
        assert capture_gaps(connection) == {}, removal
        reasons = connection.execute("select reinit_reason from pgtrickle.pgt_stream_tables").fetchall()
        connection.rollback()
        assert reasons[0][0], removal
        reader.starts_over()
        orders.change("delete from orders", "insert into orders values (9, 90)")
        assert reader.changes()["(9,90)"] == 1, removal
        reader.catches_up()


@pytest.mark.parametrize(
    "schema", ["pgtrickle", "pgtrickle_internal", "pgtrickle_changes", "pgtrickle_state"]
)
def test_writes_go_on_after_a_schema_was_dropped(source, follow, admin, connect, schema):
    source("orders(id int, amount int)", rows=[(2, 5)])
    follow("orders")
    writer = connect(APP)
    write_all(writer)
    admin.execute(sql.SQL("drop schema {} cascade").format(sql.Identifier(schema)))
    write_all(writer)
    write_all(connect(APP))


def test_nothing_is_captured_once_nobody_can_read_it(source, follow, admin, connect):
    source("orders(id int, amount int)")
    reader = follow("orders")
    writer = connect(APP)
    write_all(writer)
    admin.execute("drop schema pgtrickle cascade")
    count = sql.SQL("select count(*) from {}").format(
        sql.Identifier("pgtrickle_changes", f"changes_{reader.relid}_0")
    )
    before = admin.execute(count).fetchone()
    write_all(writer)
    assert admin.execute(count).fetchone() == before


def test_the_role_that_captures_may_be_renamed(source, follow, admin, connect):
    source("orders(id int, amount int)")
    reader = follow("orders")
    writer = connect(APP)
    write_all(writer)
    admin.execute("begin")
    admin.execute("alter role trickle rename to sidecar")
    try:
        admin.execute("insert into orders values (7, 70)")
    finally:
        admin.execute("rollback")
    write_all(writer)
    assert reader.catches_up() or reader.was_truncated


def test_the_type_of_a_column_that_is_gone_can_be_dropped(source, follow, app, connection):
    app.execute("create type mood as enum ('calm', 'wild')")
    orders = source("orders(id int, mood mood)", rows=[(1, "calm")])
    reader = follow("orders", "select id, mood::text as mood from orders")
    orders.change("alter table orders drop column mood")
    repair(connection, reader.relid)
    orders.change("drop type mood")


FUNCTIONS = ("pg_try_advisory_xact_lock_shared(integer, integer)", "pg_notify(text, text)")


@pytest.mark.parametrize("level", ["statement", "row"])
def test_writes_are_captured_where_functions_of_postgresql_are_closed_to_the_public(
    source, follow, admin, connect, level
):
    heir = " inherits (parents)" if level == "row" else ""
    source("parents()")
    source(f"orders(id int, amount int){heir}")
    reader = follow("orders")
    writer, asking = connect(APP), connect(TRICKLE)
    write_all(writer)
    # somebody asks to be woken, so that both functions would be called
    asking.execute(
        "select pg_advisory_lock(pgtrickle_internal.wake_lock(), slot) from generate_series(0, 127) slot"
    )
    for function in FUNCTIONS:
        admin.execute(f"revoke execute on function {function} from public")
        try:
            reader.starts_over()
            for session in (writer, connect(APP)):
                session.execute("insert into orders values (5, 50)")
                session.commit()
            assert reader.changes() == {"(5,50)": 2}
        finally:
            admin.execute(f"grant execute on function {function} to public")


def test_a_writer_can_prepare_its_transaction_whoever_asks_to_be_woken(source, follow, connect):
    """Anybody may hold the locks by which a sidecar asks; who has notified cannot prepare."""
    source("orders(id int, amount int)")
    reader = follow("orders")
    hostile, writer = connect(APP), connect(APP)
    hostile.execute("select pg_advisory_lock(1885828212, slot) from generate_series(0, 127) slot")
    writer.autocommit = True
    writer.execute("begin")
    writer.execute("insert into orders values (1, 10)")
    writer.execute("prepare transaction 'both'")
    writer.execute("commit prepared 'both'")
    assert reader.catches_up() == 1


@pytest.mark.own_server
def test_a_full_queue_of_notifications_makes_no_write_fail(templates, pg_version):
    """Anybody can fill the queue: a listener that stays in a transaction keeps it from being emptied."""
    if pg_version < 17:
        pytest.skip("the queue of PostgreSQL 16 and older has no setting, and holds 8 GB")
    with new_server(pg_version, max_notify_queue_pages="64", max_prepared_transactions="0") as server:
        templates.ensure(server)
        database = create_database(server, "noisy", TEMPLATE)
        with (
            closing(database.connect(APP, autocommit=True)) as app,
            closing(database.connect(APP)) as deaf,
            closing(database.connect(TRICKLE, autocommit=True)) as sidecar,
        ):
            app.execute("create table orders(id int)")
            app.execute("grant select, trigger on orders to trickle")
            app.execute("select pgtrickle.create_stream_table('seen', 'select id from orders')")
            deaf.execute("listen noise")
            deaf.commit()
            deaf.execute("select 1")
            sidecar.execute(
                "select pg_advisory_lock(pgtrickle_internal.wake_lock(), s) from generate_series(0, 127) s"
            )
            with suppress(psycopg.OperationalError):
                while True:
                    app.execute("select pg_notify('noise', repeat('x', 7900))")
            assert app.execute("select pg_notification_queue_usage() > 0.5").fetchone() == (True,)
            app.execute("insert into orders values (1)")
            app.execute("select pgtrickle.alter_stream_table('seen', status => 'SUSPENDED')")
            app.execute("select pgtrickle.resume_stream_table('seen')")
