"""A source is altered under its trigger: the application goes on writing, and what was missed is told."""

from __future__ import annotations

import pytest

from tests.fixtures.databases import APP

pytestmark = pytest.mark.every_postgres


@pytest.mark.parametrize(
    "alteration",
    [
        "alter table orders rename column amount to price",
        "alter table orders drop column amount",
        "alter table orders alter column amount type bigint",
        "alter table orders rename to purchases",
    ],
)
def test_the_application_goes_on_writing_whatever_it_alters(source, follow, app, alteration, connection):
    orders = source("orders(id int, amount int)", rows=[(1, 10)])
    reader = follow("orders")
    orders.change(alteration)
    table = "purchases" if "purchases" in alteration else "orders"
    orders.change(f"insert into {table}(id) values (5)", f"update {table} set id = 6 where id = 5")
    # rotation writes the trigger function anew, for the table as it is now
    connection.execute("select pgtrickle_internal.rotate(%s, 0)", (reader.relid,))
    connection.commit()
    orders.change(f"insert into {table}(id) values (7)", f"delete from {table} where id = 7")


ALTERATIONS = pytest.mark.parametrize(
    "alteration",
    [
        "alter table orders rename column amount to price",
        "alter table orders drop column amount",
        "alter table orders alter column amount type bigint",
        "alter table orders alter column amount type text",
        "alter table orders drop column amount; alter table orders add column amount text",
    ],
)


@ALTERATIONS
@pytest.mark.parametrize(
    "statement",
    [
        "insert into orders(id) values (5)",
        "update orders set id = id + 10",
        "delete from orders where id = 1",
        "insert into orders(id) select 1 where false",
        "update orders set id = 0 where false",
        "delete from orders where false",
    ],
)
def test_a_session_that_has_written_before_notices_what_another_alters(
    source, follow, app, connect, alteration, statement
):
    source("orders(id int, amount int)", rows=[(1, 10)])
    reader = follow("orders")
    writer = connect(APP)
    # often enough for plans that are kept
    for number in range(7):
        writer.execute("insert into orders values (%s, 1)", (100 + number,))
        writer.execute("update orders set amount = 2 where id = 100")
        writer.execute("delete from orders where id = %s", (100 + number,))
        writer.commit()
    reader.catches_up()
    app.execute(alteration)
    writer.execute(statement)
    writer.commit()
    assert reader.is_marked()


@ALTERATIONS
def test_a_writer_with_an_older_snapshot_notices_what_is_altered(source, follow, app, connect, alteration):
    source("orders(id int, amount int)", rows=[(1, 10)])
    reader = follow("orders")
    writer = connect(APP)
    writer.execute("insert into orders values (2, 20)")
    writer.commit()
    writer.execute("begin isolation level repeatable read")
    writer.execute("select 1 from pg_class limit 1")
    app.execute(alteration)
    writer.execute("insert into orders(id) values (5)")
    writer.commit()
    writer.execute("insert into orders(id) values (6)")
    writer.commit()
    assert reader.is_marked()
