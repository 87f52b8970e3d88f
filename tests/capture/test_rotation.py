"""Buffers rotate: they stay small while everybody keeps up, and keep all that anybody still needs."""

from __future__ import annotations

import psycopg
import pytest

from pgtrickle.capture.rotate import release_unused, rotate, sources_to_rotate
from tests.fixtures.databases import APP

pytestmark = pytest.mark.every_postgres


def has_read_everything(connection: psycopg.Connection, number: int | None = None) -> None:
    """As a refresh would: its frontier is now."""
    connection.execute(
        "update pgtrickle.pgt_stream_tables set status = 'ACTIVE', frontier = pg_current_snapshot()"
        " where %(n)s::bigint is null or pgt_id = %(n)s::bigint",
        {"n": number},
    )
    connection.commit()


def sizes(connection: psycopg.Connection, relid: int) -> tuple[int, int]:
    row = connection.execute(
        f"select pg_relation_size('pgtrickle_changes.changes_{relid}_0'),"
        f" pg_relation_size('pgtrickle_changes.changes_{relid}_1')"
    ).fetchone()
    connection.commit()
    assert row is not None
    return row


def test_buffers_stay_bounded_under_steady_writes(source, follow, connection):
    orders = source("orders(id int, note text)")
    reader = follow("orders")
    has_read_everything(connection)
    largest = 0
    for _ in range(12):
        orders.change("insert into orders select n, 'some text' from generate_series(1, 500) n")
        assert reader.catches_up() == 500
        has_read_everything(connection)
        rotate(connection, reader.relid, min_bytes=16384)
        largest = max(largest, sum(sizes(connection, reader.relid)))
    # one window is about 32 kB; without rotation there would be twelve
    assert largest < 200_000


def test_a_small_buffer_is_left_alone(source, follow, connection):
    orders = source("orders(id int)")
    reader = follow("orders")
    orders.change("insert into orders values (1)")
    has_read_everything(connection)
    assert not rotate(connection, reader.relid)


def test_a_lagging_reader_keeps_what_it_needs(source, follow, connection):
    orders = source("orders(id int)")
    fast, slow = follow("orders"), follow("orders")
    has_read_everything(connection)
    for number in range(6):
        orders.change(f"insert into orders values ({number})")
        fast.catches_up()
        has_read_everything(connection, 1)
        rotate(connection, fast.relid, min_bytes=0)
    assert slow.changes() == {f"({number})": 1 for number in range(6)}
    slow.catches_up()
    has_read_everything(connection, 2)
    assert rotate(connection, fast.relid, min_bytes=0)
    assert min(sizes(connection, fast.relid)) == 0


def indexed(connection: psycopg.Connection, relid: int) -> list[str]:
    rows = connection.execute(
        "select indrelid::regclass::text from pg_index where indrelid in (%s::regclass, %s::regclass)",
        [f"pgtrickle_changes.changes_{relid}_{side}" for side in (0, 1)],
    ).fetchall()
    connection.commit()
    return sorted(name.rpartition("_")[2] for (name,) in rows)


def test_buffers_that_a_lagging_reader_needs_are_indexed_until_it_has_caught_up(source, follow, connection):
    orders = source("orders(id int)")
    fast, slow = follow("orders"), follow("orders")
    has_read_everything(connection)
    found, active = [], []
    for number in range(8):
        orders.change(f"insert into orders values ({number})")
        fast.catches_up()
        has_read_everything(connection, 1)
        rotate(connection, fast.relid, min_bytes=0, grown_bytes=1)
        found.append(indexed(connection, fast.relid))
        active += connection.execute("select active_buffer from pgtrickle.pgt_sources").fetchall()[0]
    # retire the first, index it, return to it, index the second: no buffer is indexed while it is written
    assert found == [[], ["0"], ["0"], ["0", "1"], *[["0", "1"]] * 4]
    assert active == [1, 1, 0, 0, 0, 0, 0, 0]
    assert slow.changes() == {f"({number})": 1 for number in range(8)}
    slow.catches_up()
    has_read_everything(connection, 2)
    assert rotate(connection, fast.relid, min_bytes=0)
    assert rotate(connection, fast.relid, min_bytes=0)
    assert indexed(connection, fast.relid) == []


def test_a_writer_open_across_the_rotation_loses_nothing(source, follow, connection, connect):
    orders = source("orders(id int)")
    reader = follow("orders")
    writer = connect(APP)
    writer.execute("insert into orders values (1)")
    has_read_everything(connection)
    assert rotate(connection, reader.relid, min_bytes=0)
    orders.change("insert into orders values (2)")
    has_read_everything(connection)
    # the writer holds the retired buffer: nobody waits for it
    assert not rotate(connection, reader.relid, min_bytes=0)
    writer.execute("insert into orders values (3)")
    writer.commit()
    reader.catches_up()
    assert reader.rows == {"(1)": 1, "(2)": 1, "(3)": 1}


def test_a_row_committed_into_the_retired_buffer_after_the_frontier_stays(
    source, follow, connection, connect
):
    source("orders(id int)")
    reader = follow("orders")
    writer = connect(APP)
    writer.execute("insert into orders values (1)")
    has_read_everything(connection)
    assert rotate(connection, reader.relid, min_bytes=0)
    writer.commit()
    assert not rotate(connection, reader.relid, min_bytes=0)
    assert reader.changes() == {"(1)": 1}


def test_a_first_load_under_way_keeps_its_changes(source, follow, connection, connect):
    orders = source("orders(id int)")
    reader = follow("orders")
    rotate(connection, reader.relid, min_bytes=0)
    loading = connect("trickle")
    loading.execute("select from pgtrickle.pgt_stream_tables for no key update")
    orders.change("insert into orders values (1)")
    rotate(connection, reader.relid, min_bytes=0)
    rotate(connection, reader.relid, min_bytes=0)
    assert reader.changes() == {"(1)": 1}
    loading.rollback()


def test_a_table_that_never_loaded_holds_nobody_up(source, follow, connection):
    orders = source("orders(id int)")
    reader = follow("orders")
    orders.change("insert into orders values (1)")
    assert rotate(connection, reader.relid, min_bytes=0)
    assert not rotate(connection, reader.relid, min_bytes=1)
    assert sizes(connection, reader.relid) == (0, 0)


def test_only_buffers_with_something_to_empty_or_retire_are_rotated(source, follow, connection):
    orders = source("orders(id int)")
    reader = follow("orders")
    assert sources_to_rotate(connection, min_bytes=1) == ()
    orders.change("insert into orders values (1)")
    assert sources_to_rotate(connection) == ()
    assert sources_to_rotate(connection, min_bytes=1) == (reader.relid,)
    rotate(connection, reader.relid, min_bytes=1)
    assert sources_to_rotate(connection) == (reader.relid,)


def test_what_nobody_reads_any_more_is_released(source, follow, connection, app):
    orders = source("orders(id int)")
    follow("orders")
    app.execute("select pgtrickle.drop_stream_table('follower_1')")
    assert connection.execute("select source_relid from pgtrickle.pgt_sources").fetchall() == []
    assert release_unused(connection) == 0
    row = app.execute("select count(*) from pg_trigger where tgrelid = 'orders'::regclass").fetchone()
    assert row == (0,)
    orders.change("insert into orders values (1)")


def test_a_busy_source_is_released_later(source, follow, connection, connect, app):
    source("orders(id int)")
    follow("orders")
    busy = connect(APP)
    busy.execute("insert into orders values (1)")
    app.execute("set lock_timeout = '50ms'")
    app.execute("select pgtrickle.drop_stream_table('follower_1')")
    connection.execute("set lock_timeout = '50ms'")
    connection.commit()
    assert release_unused(connection) == 0
    connection.commit()
    busy.commit()
    assert release_unused(connection) == 1
