"""A source that is busy does not keep anybody from creating: the stream table waits for its triggers."""

from __future__ import annotations

import threading
import time

import pytest

from pgtrickle.capture.repair import capture_gaps, repair, retry_capture, waiting_sources
from pgtrickle.commands.status import table_status
from pgtrickle.model.errors import Busy
from tests.fixtures.databases import APP

pytestmark = pytest.mark.every_postgres


@pytest.fixture
def orders(source):
    return source("orders(id int primary key, amount int)", rows=[(1, 10)])


def create(connection, name="s", query="select id from orders"):
    connection.execute("select pgtrickle.create_stream_table(%s, %s)", (name, query))


def waiting(connection):
    rows = connection.execute(
        "select s.pgt_name, pgtrickle_internal.printed(w.source_relid) from pgtrickle.pgt_waiting w"
        " join pgtrickle.pgt_stream_tables s on s.pgt_id = w.pgt_id order by 1, 2"
    ).fetchall()
    connection.rollback()
    return rows


def retry_all(connection):
    sources = connection.execute("select distinct source_relid::bigint from pgtrickle.pgt_waiting").fetchall()
    connection.commit()
    return [retry_capture(connection, source) for (source,) in sources]


def test_creating_over_a_busy_source_returns_and_says_who_is_in_the_way(
    orders, app, connect, connection, database
):
    writer = connect(APP)
    writer.execute("insert into orders values (2, 5)")
    notices = []
    app.add_notice_handler(lambda notice: notices.append((notice.message_primary, notice.message_detail)))
    create(app)
    ((message, detail),) = notices
    assert message == "stream table public.s is waiting for triggers on public.orders"
    assert f"pid {writer.info.backend_pid} (role app" in detail
    shown = table_status(database.dsn(APP), "s")
    assert shown.status.value == "INITIALIZING"
    assert f"pid {writer.info.backend_pid} (role app" in str(shown.waits)
    assert retry_all(connection) != [None]
    assert "after 2 attempts" in str(table_status(database.dsn(APP), "s").waits)
    # whoever writes meanwhile is not held up
    app.execute("insert into orders values (3, 5)")
    writer.commit()
    assert retry_all(connection) == [None]
    assert str(table_status(database.dsn(APP), "s").waits).startswith("no sidecar serves")
    assert capture_gaps(connection) == {}
    app.execute("insert into orders values (4, 5)")
    count = connection.execute("select sum(pending_rows) from pgtrickle.change_buffer_sizes()").fetchone()
    assert count == (1,)


def test_only_the_busy_source_is_waited_for(orders, source, app, connect, connection):
    source("free(id int)")
    connect(APP).execute("insert into orders values (2, 5)")
    create(app, query="select o.id from orders o join free f on f.id = o.id")
    assert waiting(connection) == [("s", "public.orders")]
    captured = connection.execute(
        "select pgtrickle_internal.printed(source_relid) from pgtrickle.pgt_sources"
    ).fetchall()
    assert captured == [("public.free",)]


def test_what_the_creator_has_written_itself_keeps_nobody_waiting(orders, app, connection):
    with app.transaction():
        app.execute("insert into orders values (2, 5)")
        create(app)
        app.execute("insert into orders values (3, 5)")
    assert waiting(connection) == []


def test_others_who_read_the_busy_source_are_not_held_up(orders, app, connect, connection):
    create(app, "first")
    connect(APP).execute("insert into orders values (2, 5)")
    # what is captured already needs no new trigger, but a new column does
    create(app, "second")
    create(app, "third", "select amount from orders")
    create(app, "fourth", "select amount + 1 as more from orders")
    assert waiting(connection) == [("fourth", "public.orders"), ("third", "public.orders")]


def test_another_query_over_a_busy_source_waits_too(orders, source, app, connect, connection):
    source("free(id int)")
    create(app, query="select id from free")
    writer = connect(APP)
    writer.execute("insert into orders values (2, 5)")
    app.execute("select pgtrickle.alter_stream_table('s', query => 'select id from orders')")
    assert waiting(connection) == [("s", "public.orders")]
    app.execute("select pgtrickle.alter_stream_table('s', query => 'select id from free where id > 0')")
    assert waiting(connection) == []


def test_a_stream_table_that_waits_can_be_dropped(orders, app, connect, connection):
    connect(APP).execute("insert into orders values (2, 5)")
    create(app)
    app.execute("select pgtrickle.drop_stream_table('s')")
    assert waiting(connection) == []


def test_a_source_that_is_dropped_while_it_is_waited_for_is_not_tried_for_ever(
    orders, app, connect, connection
):
    writer = connect(APP)
    writer.execute("insert into orders values (2, 5)")
    create(app)
    writer.rollback()
    app.execute("drop table orders")
    assert retry_all(connection) == [None]


def test_a_privilege_that_was_revoked_meanwhile_is_told(orders, app, connect, connection, database):
    writer = connect(APP)
    writer.execute("insert into orders values (2, 5)")
    create(app)
    writer.rollback()
    app.execute("revoke trigger on orders from trickle")
    assert retry_all(connection) == ["permission denied for table orders"]
    assert "permission denied for table orders" in str(table_status(database.dsn(APP), "s").waits)


def test_readers_of_a_busy_source_wait_for_its_repair(orders, app, connect, connection):
    create(app)
    connection.execute("update pgtrickle.pgt_stream_tables set is_populated = true, status = 'ACTIVE'")
    connection.commit()
    app.execute("alter table orders disable trigger all")
    writer = connect(APP)
    writer.execute("insert into orders values (2, 5)")
    (relation,) = capture_gaps(connection)
    connection.commit()
    with pytest.raises(Busy, match=f"pid {writer.info.backend_pid} "):
        repair(connection, relation)
    assert waiting(connection) == [("s", "public.orders")]
    writer.commit()
    assert retry_all(connection) == [None]
    marked = connection.execute(
        "select needs_reinit, reinit_reason from pgtrickle.pgt_stream_tables"
    ).fetchall()
    assert marked[0][0]
    assert marked[0][1].endswith("was off")


def test_pauses_between_attempts_grow_up_to_a_limit(connection):
    rows = connection.execute(
        "select n, extract(epoch from pgtrickle_internal.retry_pause(n))::float8 from generate_series(1,"
        " 100) n"
    ).fetchall()
    pauses = dict(rows)
    assert 0.2 < pauses[1] < 0.5
    assert all(3.7 <= pause <= 6.3 for n, pause in pauses.items() if n > 10)


def test_attempts_never_hold_up_writers_for_longer_than_a_moment(orders, app, connect, connection):
    long_one = connect(APP)
    long_one.execute("insert into orders values (2, 5)")
    create(app)
    stop = threading.Event()
    took = []

    def write():
        with connect(APP) as writer:
            while not stop.is_set():
                started = time.monotonic()
                writer.execute("update orders set amount = amount + 1 where id = 1")
                writer.commit()
                took.append(time.monotonic() - started)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(20):
            assert retry_all(connection) != [None]
    finally:
        stop.set()
        thread.join()
    assert len(took) > 20
    # an attempt waits for 50 ms; the rest is for a machine that is busy with other things
    assert max(took) < 2
    long_one.commit()
    assert retry_all(connection) == [None]
    assert waiting_sources(connection) == ()


def test_prepared_transactions_are_named_as_what_is_in_the_way(orders, app, connect, connection):
    with connect(APP) as other:
        other.execute("insert into orders values (2, 5)")
        other.execute("prepare transaction 'later'")
    create(app)
    assert retry_all(connection) == ["a prepared transaction"]
    app.execute("rollback prepared 'later'")
    assert retry_all(connection) == [None]


def test_an_owner_who_could_switch_triggers_to_always_waits_for_no_writer(orders, app, connect, connection):
    writer = connect(APP)
    writer.execute("insert into orders values (2, 5)")
    create(app)
    writer.commit()
    # the sidecar, which does not own the table, cannot let them fire for replicated writes
    assert retry_all(connection) == [None]
    writer.execute("insert into orders values (3, 5)")
    create(app, "second")
    writer.commit()
    create(app, "third")
    always = connection.execute("select is_always from pgtrickle.pgt_sources").fetchall()
    assert always == [(True,)]
