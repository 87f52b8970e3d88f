"""Columns of domains: what the application may write, our own rows with nulls must not be refused for."""

from __future__ import annotations

import pytest

from tests.fixtures.databases import APP

pytestmark = pytest.mark.every_postgres

TYPES = {
    "not null": "create domain wanted as int not null check (value > 0)",
    "over a domain": "create domain below as int not null; create domain wanted as below check (value > 0)",
    "over an array": "create domain wanted as int[] not null",
    "over a composite": "create type pair as (a int, b int); create domain wanted as pair not null",
    "in a composite": "create domain below as int not null; create type wanted as (a below, b int)",
    "in an array": "create domain below as int not null; create domain wanted as below[] not null",
    "over a range": "create domain wanted as int4range not null",
    "over an enum": "create type mood as enum ('calm'); create domain wanted as mood not null",
}
VALUES = {
    "over an array": "'{1}'",
    "over a composite": "'(1,2)'",
    "in a composite": "'(1,2)'",
    "in an array": "'{1}'",
    "over a range": "'[1,3)'",
    "over an enum": "'calm'",
}


@pytest.mark.parametrize("kind", TYPES)
def test_a_column_of_a_domain_is_written_truncated_renamed_and_captured_again(
    source, follow, app, connect, connection, kind
):
    for statement in TYPES[kind].split(";"):
        app.execute(statement)
    value = VALUES.get(kind, "1")
    orders = source("orders(id int, amount wanted)")
    reader = follow("orders")
    # another reader, of a column that was not captured before
    app.execute("alter table orders add column more wanted default " + value)
    app.execute("select pgtrickle.create_stream_table('second', 'select more from orders')")
    orders.change(
        f"insert into orders values (1, {value}, {value})", "update orders set id = 2", "truncate orders"
    )
    assert reader.is_marked()
    writer = connect(APP)
    writer.execute(f"insert into orders values (3, {value}, {value})")
    writer.commit()
    app.execute("alter table orders rename column amount to price")
    writer.execute(f"insert into orders values (4, {value}, {value})")
    writer.execute("delete from orders where id = 4")
    writer.commit()


def test_a_constraint_added_to_a_domain_is_not_checked_against_our_buffers(source, follow, app):
    app.execute("create domain positive as int")
    orders = source("orders(id int, amount positive)", rows=[(1, -5)])
    reader = follow("orders")
    orders.change("update orders set amount = 5", "alter domain positive add check (value > 0)")
    orders.change("insert into orders values (2, 6)")
    assert reader.changes() == {"(1,-5)": -1, "(1,5)": 1, "(2,6)": 1}


def test_a_buffer_of_an_earlier_version_loses_its_domain_and_keeps_its_rows(source, follow, app, connection):
    app.execute("create domain positive as int not null check (value > 0)")
    app.execute("grant usage on type positive to trickle")
    orders = source("orders(id int, amount positive)")
    reader = follow("orders")
    orders.change("insert into orders values (1, 7)")
    for side in (0, 1):
        connection.execute(
            f"alter table pgtrickle_changes.changes_{reader.relid}_{side} alter column c2 type positive"
        )
    connection.execute("select pgtrickle_internal.capture_source(%s, '{}')", (reader.relid,))
    connection.commit()
    assert reader.changes() == {"(1,7)": 1}
    orders.change("truncate orders")
