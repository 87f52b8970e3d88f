"""Differential refreshes of published stream tables reach a subscriber row by row."""

from __future__ import annotations

import pytest

from pgtrickle.model.stream_table import Action

pytestmark = [pytest.mark.own_server, pytest.mark.slow]


def test_a_changed_group_is_sent_and_nothing_else(source, stream_table, app, subscriber):
    orders = source("orders(id int primary key, region text, amount int)", rows=[(1, "a", 1), (2, "b", 2)])
    sales = stream_table(
        "select region, sum(amount) as total from orders group by region", name="sales", mode="DIFFERENTIAL"
    )
    app.execute("select pgtrickle.stream_table_to_publication('sales')")
    subscriber.create_table("region text, total bigint")
    subscriber.subscribe()
    subscriber.has_the_rows()
    subscriber.arrived()
    orders.change("insert into orders values (3, 'a', 5)")
    assert sales.refresh().action is Action.DIFFERENTIAL
    subscriber.has_the_rows()
    assert subscriber.arrived() == ["UPDATE"]
    orders.change("delete from orders where region = 'b'", "insert into orders values (4, 'c', 1)")
    sales.refresh()
    subscriber.has_the_rows()
    assert sorted(subscriber.arrived()) == ["DELETE", "INSERT"]


GROUPS = "select region, sum(amount) as total from orders group by region"
FIRST = "select id, amount from orders order by amount limit 1"


@pytest.mark.parametrize("is_first", [True, False])
def test_where_everything_is_published_the_state_is_written_too(
    source, stream_table, admin, connection, app, is_first
):
    """The state of groups and of first rows has no key. A sidecar gives its own tables a replica identity."""
    orders = source("orders(id int primary key, region text, amount int)", rows=[(1, "a", 1), (2, "b", 2)])
    publication = "create publication everything for all tables"
    if is_first:
        admin.execute(publication)
    tables = [stream_table(query, mode="DIFFERENTIAL") for query in (GROUPS, FIRST)]
    if not is_first:
        admin.execute(publication)
        for table in tables:
            app.execute(f"alter table {table.name} replica identity full")
        connection.execute("select pgtrickle_internal.identify_unidentified()")
        connection.commit()
    orders.change("update orders set amount = 7", "delete from orders where id = 2")
    for table in tables:
        table.refresh()
        table.equals_its_query()
