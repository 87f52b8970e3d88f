"""Differential refreshes of published stream tables reach a subscriber row by row."""

from __future__ import annotations

import pytest

from pgtrickle.model.stream_table import Action
from pgtrickle.scheduler.service.threshold_alerts import AlertLimits
from tests.fixtures.sidecars import running
from tests.fixtures.waiting import eventually

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


def test_a_running_sidecar_warns_of_a_stopped_subscriber_and_tells_when_it_is_back(
    source, stream_table, app, subscriber, engine
):
    orders = source("orders(id int primary key, amount int)", rows=[(1, 1)])
    stream_table("select id, amount from orders", name="sales", mode="DIFFERENTIAL")
    app.execute("select pgtrickle.alter_stream_table('sales', schedule => '100ms')")
    app.execute("select pgtrickle.stream_table_to_publication('sales')")
    subscriber.create_table("id int, amount int")
    subscriber.subscribe()
    subscriber.has_the_rows()
    app.execute("select pgtrickle.register_subscriber('sales', 'reader')")
    subscriber.stop()
    with running(engine, alert_limits=AlertLimits(publication_lag=1 << 20)) as sidecar:
        orders.change("insert into orders select n, n from generate_series(2, 20000) n")
        eventually(lambda: any(event.is_warning for event in list(sidecar.events)))
        subscriber.resume()
        subscriber.has_the_rows()
        eventually(lambda: any("caught up" in (event.note or "") for event in list(sidecar.events)))
    assert len([event for event in sidecar.events if event.is_warning]) == 1
    assert sidecar.errors() == []


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
