"""The window between two snapshots holds what was committed between them, in whatever order."""

from __future__ import annotations

import pytest

from tests.fixtures.databases import APP

pytestmark = pytest.mark.every_postgres


def test_transactions_that_commit_out_of_order_are_each_seen_once(source, follow, connect):
    source("orders(id int)")
    reader = follow("orders")
    first, second = connect(APP), connect(APP)
    first.execute("insert into orders values (1)")
    second.execute("insert into orders values (2)")
    second.commit()
    assert reader.changes() == {"(2)": 1}
    reader.catches_up()
    first.execute("insert into orders values (3)")
    first.commit()
    assert reader.changes() == {"(1)": 1, "(3)": 1}
    reader.catches_up()


def test_a_transaction_open_across_many_windows_is_seen_when_it_commits(source, follow, connect, app):
    source("orders(id int)")
    slow = connect(APP)
    reader = follow("orders")
    slow.execute("insert into orders values (0)")
    for number in range(1, 6):
        app.execute("insert into orders values (%s)", (number,))
        assert reader.changes() == {f"({number})": 1}
        reader.catches_up()
    slow.commit()
    assert reader.changes() == {"(0)": 1}
    reader.catches_up()


def test_what_is_rolled_back_was_never_there(source, follow, connect):
    source("orders(id int)")
    reader = follow("orders")
    writer = connect(APP)
    writer.execute("insert into orders values (1)")
    writer.rollback()
    writer.execute("insert into orders values (2)")
    writer.execute("savepoint here")
    writer.execute("insert into orders values (3)")
    writer.execute("rollback to savepoint here")
    writer.execute("savepoint there")
    writer.execute("insert into orders values (4)")
    writer.execute("release savepoint there")
    writer.commit()
    assert reader.changes() == {"(2)": 1, "(4)": 1}


def test_a_two_phase_commit_is_seen_when_it_is_finished(source, follow, connect, app):
    source("orders(id int)")
    reader = follow("orders")
    writer = connect(APP)
    writer.execute("insert into orders values (1)")
    writer.execute("prepare transaction 'later'")
    writer.close()
    app.execute("insert into orders values (2)")
    assert reader.changes() == {"(2)": 1}
    reader.catches_up()
    app.execute("commit prepared 'later'")
    assert reader.changes() == {"(1)": 1}


def test_replicated_writes_are_captured_where_the_creator_owns_the_table(source, follow, admin):
    source("orders(id int)")
    reader = follow("orders")
    admin.execute("set session_replication_role = replica")
    admin.execute("insert into orders values (1)")
    assert reader.changes() == {"(1)": 1}


def test_insert_update_and_delete_of_one_row_in_one_window_cancel(source, follow, app):
    source("orders(id int primary key, amount int)")
    reader = follow("orders")
    app.execute("insert into orders values (1, 1)")
    app.execute("update orders set amount = 2")
    app.execute("delete from orders")
    assert reader.changes() == {}
    reader.catches_up()


def test_a_stream_table_waits_for_writers_under_way(source, connect, app, connection):
    """Its triggers would miss what a writer does after them in a statement that began before."""
    source("orders(id int)")
    writer = connect(APP)
    writer.execute("insert into orders values (1)")
    app.execute("set lock_timeout = '7s'")
    app.execute("select pgtrickle.create_stream_table('s', 'select id from orders')")
    assert app.execute("show lock_timeout").fetchone() == ("7s",)
    assert app.execute("select count(*) from pg_trigger where tgrelid = 'orders'::regclass").fetchone() == (
        0,
    )
    writer.commit()
    app.execute("select pgtrickle.create_stream_table('t', 'select id from orders')")
    assert app.execute("select count(*) from pg_trigger where tgrelid = 'orders'::regclass").fetchone() == (
        4,
    )
    assert app.execute("show lock_timeout").fetchone() == ("7s",)
