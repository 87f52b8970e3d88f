"""Refreshes and their Spark tasks together keep within the connections that they may have."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from pgtrickle.embedded import SUPERUSER
from pgtrickle.model.settings import SparkPath
from pgtrickle.postgres.pool import FOR_TASKS
from tests.fixtures.databases import TRICKLE

QUERIES = (
    "select o.customer, c.name, sum(o.amount) as total from orders o join customers c on c.id = o.customer"
    " group by o.customer, c.name",
    "select id, amount from orders where amount % 2 = 0",
    "select customer, max(amount) as top from orders group by customer",
)


@pytest.mark.light
@pytest.mark.slow
def test_many_refreshes_and_distributed_loads_keep_the_limit(source, stream_table, engine, app, database):
    source("orders(id int primary key, customer int, amount int)")
    source("customers(id int primary key, name text)", rows=[(i, f"customer {i}") for i in range(20)])
    app.execute("insert into orders select i, i % 20, i from generate_series(1, 20000) i")
    engine.path = SparkPath.DISTRIBUTED
    tables = [stream_table(query, loads=False) for query in QUERIES]
    seen, done = [], threading.Event()

    def watch() -> None:
        with database.connect(SUPERUSER, autocommit=True) as admin:
            while not done.wait(0.002):
                row = admin.execute(
                    "select count(*) from pg_stat_activity where datname = %s and usename = %s"
                    " and application_name like 'pgtrickle%%'",
                    (database.name, TRICKLE),
                ).fetchone()
                assert row is not None
                seen.append(row[0])

    with ThreadPoolExecutor(4) as workers:
        watcher = workers.submit(watch)
        for loaded in [workers.submit(table.refresh) for table in tables]:
            loaded.result(240)
        app.execute("update orders set amount = amount + 1 where id % 3 = 0")
        for followed in [workers.submit(table.refresh) for table in tables]:
            followed.result(240)
        done.set()
        watcher.result(30)
    for table in tables:
        table.equals_its_query()
    # a connection that was closed is seen until its process has ended
    assert 2 < max(seen) <= engine.max_connections + FOR_TASKS
    assert sorted(seen)[len(seen) * 9 // 10] <= engine.max_connections
