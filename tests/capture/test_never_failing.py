"""Whatever somebody removes or revokes, the application goes on writing, and the gap is repaired."""

from __future__ import annotations

import pytest
from psycopg import sql

from pgtrickle.capture.repair import capture_gaps, repair
from tests.fixtures.databases import APP, TRICKLE

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
