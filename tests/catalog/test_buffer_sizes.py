"""The sizes of change buffers are known without reading them, under the names of their sources."""

from __future__ import annotations

import pytest

from pgtrickle.catalog.buffer_sizes import buffer_sizes


@pytest.mark.every_postgres
def test_a_written_source_has_a_buffer_and_an_idle_one_none(source, app, connection):
    orders = source('"Odd orders"(id int primary key)', rows=[(1,)])
    source("items(id int primary key)", rows=[(1,)])
    for name, query in (("a", 'select id from "Odd orders"'), ("b", "select id from items")):
        app.execute("select pgtrickle.create_stream_table(%s, %s, null)", (name, query))
    orders.change('insert into "Odd orders" values (2)')
    first, second = buffer_sizes(connection)
    assert (first.name, second.name, second.bytes) == ('public."Odd orders"', "public.items", 0)
    assert first.bytes > 0
    relation = app.execute("""select '"Odd orders"'::regclass::oid""").fetchone()
    assert relation == (first.source,)


def test_a_source_that_was_dropped_has_no_size(source, app, connection):
    orders = source("orders(id int primary key)", rows=[(1,)])
    app.execute("select pgtrickle.create_stream_table('a', 'select id from orders', null)")
    orders.change("drop table orders cascade")
    assert buffer_sizes(connection) == ()


def test_in_sql_dropped_tables_keep_their_last_names(source, app):
    orders = source("orders(id int primary key)", rows=[(1,)])
    source("items(id int primary key)", rows=[(1,)])
    app.execute("select pgtrickle.create_stream_table('a', 'select id from orders', null)")
    app.execute("select pgtrickle.create_stream_table('b', 'select id from items', null)")
    orders.change("drop table orders cascade")
    app.execute("drop table b")
    found = app.execute("select stream_table, source_table from pgtrickle.change_buffer_sizes()").fetchall()
    assert found == [("public.a", "public.orders"), ("public.b", "public.items")]
