"""Published stream tables follow their sources: a replica identity lets refreshes update and delete."""

from __future__ import annotations

import pytest

from tests.fixtures.databases import APP

GROUPS = "select region, sum(amount) as total, count(*) as n from orders group by region"
ROWS = "select region, amount from orders"
FIRST = "select id, amount from orders order by amount desc, id limit 2"


@pytest.mark.light
def test_published_stream_tables_follow_every_kind_of_change(source, followed, app, admin, database):
    source(
        "orders(id int primary key, region text, amount int)",
        rows=[(1, "north", 10), (2, "south", 5), (3, "south", 5)],
    )
    admin.execute(f"grant create on database {database.name} to {APP}")
    tables = followed(GROUPS, ROWS, FIRST)
    for table in tables.tables:
        app.execute("select pgtrickle.stream_table_to_publication(%s)", (table.name,))
    tables.after("insert into orders values (4, 'west', 50)")
    tables.after("update orders set amount = amount + 1 where region = 'south'")
    tables.after("delete from orders where id in (1, 2)", "insert into orders values (5, 'south', 6)")
