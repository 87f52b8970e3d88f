"""Stream tables whose query gets other columns, followed by PostgreSQL's answer while writes go on."""

from __future__ import annotations

import threading
from contextlib import closing
from dataclasses import replace

import psycopg
import pytest

from pgtrickle.catalog.dependencies import poll_ground, settle
from tests.fixtures.bags import assert_same_bag
from tests.fixtures.databases import APP

ITEMS = "items(id int primary key, g int, v int, note text)"
SHAPES = (
    "select g, sum(v) as total from items group by g",
    "select g, count(*) as n, max(v) as top, sum(v) as total from items group by g",
    "select total::bigint as total, g from (select g, sum(v)::int as total from items group by g) x",
    "select id, note, v from items",
    "select id, v * 2 as v, g from items where v > 2",
    "select distinct g from items",
    "select g, v from items order by v desc, id limit 3",
    "select string_agg(note, ',' order by id) as notes, g from items group by g",
)


@pytest.fixture
def items(source):
    return source(ITEMS, rows=[(n, n % 3, n, f"n{n}") for n in range(1, 9)])


@pytest.mark.light
def test_every_shape_can_become_every_next_one(items, stream_table, app):
    table = stream_table(SHAPES[0], name="shaped")
    for number, query in enumerate((*SHAPES[1:], SHAPES[0])):
        with app.transaction():
            app.execute("select pgtrickle.alter_stream_table('shaped', query => %s)", (query,))
        table = replace(table, query=query)
        table.equals_its_query()
        items.change(
            f"insert into items values ({100 + number}, {number % 3}, {number}, 'new')",
            "update items set v = v + 1 where id % 2 = 0",
        )
        table.refresh()
        table.equals_its_query()
        items.change("delete from items where id = (select min(id) from items)")
        table.refresh()
        table.equals_its_query()


def test_another_query_with_the_same_columns_gets_a_state_of_its_own(items, stream_table, app):
    table = stream_table("select g, sum(v)::bigint as x from items group by g", name="shaped")
    query = "select g, max(v)::bigint as x from items group by g"
    with app.transaction():
        app.execute("select pgtrickle.alter_stream_table('shaped', query => %s)", (query,))
    table = replace(table, query=query)
    table.refresh()
    items.change("delete from items where v = (select max(v) from items)")
    table.refresh()
    table.equals_its_query()


@pytest.mark.light
def test_tables_that_read_it_follow_its_new_rows(items, stream_table, app):
    lower = stream_table("select id, g, v from items", name="lower_one")
    upper = stream_table("select g, sum(v) as total from lower_one group by g", name="upper_one")
    query = "select v, note, g, id from items where v > 1"
    with app.transaction():
        app.execute("select pgtrickle.alter_stream_table('lower_one', query => %s)", (query,))
    lower = replace(lower, query=query)
    for change in ("insert into items values (50, 1, 70, 'x')", "update items set v = v - 1"):
        items.change(change)
        lower.refresh()
        upper.refresh()
        lower.equals_its_query()
        upper.equals_its_query()


def test_readers_see_the_old_rows_or_the_new_ones_and_never_wait_long(items, stream_table, app, database):
    """A reader in a loop, with its own patience, while the shape changes and writes go on."""
    items.change("insert into items select n, n % 5, n, 'x' from generate_series(1000, 30000) n")
    table = stream_table("select id, v from items", name="shaped")
    stop, seen, failures = threading.Event(), set(), []

    def read() -> None:
        with closing(database.connect(APP, autocommit=True)) as reader:
            reader.execute("set statement_timeout = '2s'")
            while not stop.is_set():
                try:
                    cursor = reader.execute("select * from shaped where id <= 2000", prepare=False)
                    # a prepared statement that names its columns lives on
                    reader.execute("select id, v from shaped where id = 1", prepare=True)
                except psycopg.Error as error:
                    failures.append(str(error))
                    return
                names = tuple(column.name for column in cursor.description or ())
                rows = cursor.fetchall()
                # 8 and 1,001 rows: neither query ever loses one of them
                if len(rows) != 1009 or any(row[names.index("v")] is None for row in rows):
                    failures.append(f"{names} had {len(rows)} rows")
                seen.add(names)

    reading = threading.Thread(target=read)
    reading.start()
    try:
        query = "select note || id as label, v, id from items"
        items.change("update items set v = v + 1 where id > 2500")
        with app.transaction():
            app.execute("select pgtrickle.alter_stream_table('shaped', query => %s)", (query,))
        items.change("update items set v = v + 1 where id > 2500")
        replace(table, query=query).refresh()
        replace(table, query=query).equals_its_query()
    finally:
        stop.set()
        reading.join(90)
    assert failures == []
    assert seen <= {("id", "v"), ("label", "v", "id")}
    assert_same_bag(app, "select * from shaped", query)


def test_kept_changes_begin_anew_with_the_new_columns(items, stream_table, app):
    table = stream_table("select id, v from items", name="shaped")
    app.execute("select pgtrickle.alter_stream_table('shaped', keep_changes => '1h')")
    table.refresh()
    app.execute("select pgtrickle.alter_stream_table('shaped', query => 'select v, note from items')")
    table.refresh()
    items.change("insert into items values (60, 1, 5, 'sixty')")
    table.refresh()
    found = app.execute("select change, data from pgtrickle.changes('shaped') order by point").fetchall()
    assert found == [("reset", None), ("insert", {"v": 5, "note": "sixty"})]


def test_a_running_sidecar_binds_and_loads_the_tables_above(items, stream_table, app, engine):
    """The readers are analysed again by the watch over what they rely on, before anybody asks."""
    stream_table("select id, g, v from items", name="lower_one")
    upper = stream_table("select g, sum(v) as total from lower_one group by g", name="upper_one")
    with app.transaction():
        app.execute(
            "select pgtrickle.alter_stream_table('lower_one', query => 'select v, g from items where v > 2')"
        )
    with engine.pool.autocommitting() as connection:
        _, moved = poll_ground(connection, None)
        for table in moved:
            settle(connection, table, waits=True)
    row = app.execute(
        "select needs_reinit, ground_generation > 1 from pgtrickle.pgt_stream_tables"
        " where pgt_name = 'upper_one'"
    ).fetchone()
    assert row == (True, True)
    upper.refresh()
    upper.equals_its_query()
