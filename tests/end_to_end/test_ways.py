"""The stream tables of a run are refreshed the way that its options ask for."""

from __future__ import annotations

import pytest

from pgtrickle.model.stream_table import Action


@pytest.mark.light
def test_every_stream_table_connects_as_this_run_asks(source, stream_table, app, engine, pytestconfig):
    orders = source("orders(id int primary key, amount int)", rows=[(1, 10), (2, 5)])
    table = stream_table("select sum(amount) as total from orders")
    orders.change("insert into orders values (3, 7)")
    assert table.refresh().action is Action.DIFFERENTIAL
    table.equals_its_query()
    found = app.execute("select pooler_compatibility_mode from pgtrickle.pgt_stream_tables").fetchall()
    assert found == [(pytestconfig.getoption("--compatible"),)]
    assert engine.pool.is_pooled == (pytestconfig.getoption("--through") == "pgbouncer")
