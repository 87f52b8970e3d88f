"""Nothing that the product does through a pooler stays behind on a connection of the server."""

from __future__ import annotations

import threading
from contextlib import ExitStack, closing

import psycopg

from pgtrickle.commands import define, status
from pgtrickle.commands.explain import explain
from pgtrickle.commands.install import install
from pgtrickle.commands.refresh import refresh
from pgtrickle.commands.run import run
from pgtrickle.commands.verify import verify
from pgtrickle.model.settings import SparkPath
from pgtrickle.refresh.engine import Engine
from tests.fixtures.databases import APP, TRICKLE
from tests.fixtures.poolers import POOL_SIZE, new_pooler
from tests.fixtures.waiting import eventually
from tests.poolers.statements import lasting, logged

ROWS = "select o.id, o.amount, c.name from orders o join customers c on c.id = o.customer"
TOTALS = (
    "select customer, count(*) as n, sum(amount) as total, max(amount) as top from orders group by customer"
)
FIRST = "select id, amount from orders order by amount desc, id limit 3"
ODD = "select customer, percentile_cont(0.5) within group (order by amount) as p from orders group by 1"
ABOVE = "select t.total, r.id from totals t join rows r on r.amount = t.top"

# what a pooler itself makes fit for each client, and what every transaction begins anew with
_FITTED = ["DateStyle", "TimeZone", "application_name", "client_encoding", "standard_conforming_strings"]
_FITTED += ["transaction_isolation", "transaction_read_only", "transaction_deferrable"]
_LEFT = """
select 'statement ' || name from pg_prepared_statements
union all select 'channel ' || c from pg_listening_channels() c
union all select 'setting ' || name from pg_settings
    where source in ('session', 'client') and name <> all (%s)
union all select 'cursor ' || name from pg_cursors where is_holdable
"""


def test_no_state_of_a_session_is_left_by_anything_the_product_does(database, source, app, admin, spark):
    server, name = database.server, database.name
    orders = source(
        "orders(id int primary key, customer int, amount int)", rows=[(i, i % 7, i * 3) for i in range(100)]
    )
    source("customers(id int primary key, name text)", rows=[(i, f"customer {i}") for i in range(7)])
    with (
        new_pooler(server, (TRICKLE, APP)) as pooler,
        logged(server, admin, name, TRICKLE) as asked,
        logged(server, admin, name, APP) as asked_by_app,
    ):
        through, mine = pooler.dsn(name, TRICKLE), pooler.dsn(name, APP)
        _use_everything(through, mine, spark, orders)
        assert _left_behind(through) == []
        assert _left_behind(mine) == []
        lying = "select relname from pg_class where relpersistence = 't' and relkind in ('r', 'v')"
        assert admin.execute(lying).fetchall() == []
        assert admin.execute("select count(*) from pg_locks where locktype = 'advisory'").fetchone() == (0,)
    assert len(asked) > 100
    assert len(asked_by_app) > 10
    assert any("copy " in one.text.lower() for one in asked)
    assert lasting(asked) == []
    assert lasting(asked_by_app) == []


def _use_everything(through, mine, spark, orders):
    install(through)
    for table, query in (("rows", ROWS), ("totals", TOTALS), ("top", FIRST), ("odd", ODD), ("above", ABOVE)):
        define.create(mine, table, query, {"schedule": "calculated"})
    engine = Engine(through, lambda: spark, max_connections=POOL_SIZE)
    try:
        assert engine.pool.is_pooled
        for path in (SparkPath.DISTRIBUTED, SparkPath.SMALL):
            engine.path = path
            for table in ("totals", "rows", "top", "odd", "above"):
                refresh(engine, table)
                explain(engine, table)
            orders.change(
                "update orders set amount = amount + 1 where id < 50", "delete from orders where id > 90"
            )
        verify(engine, None)
        orders.change("insert into orders values (1000, 1, 1)")
        _serve_until(engine, lambda: status.table_status(mine, "rows").pending_changes == 0)
        define.alter(mine, "top", {"query": FIRST.replace("3", "4")})
        define.alter(mine, "odd", {"status": "SUSPENDED"})
        define.resume(mine, "odd")
        orders.change("alter table orders add column note text")
        refresh(engine, "top")
        define.drop(mine, "totals", cascade=True)
    finally:
        engine._spark = None
        engine.close()


def _serve_until(engine, is_true):
    stop = threading.Event()
    thread = threading.Thread(target=run, args=(engine, stop))
    thread.start()
    try:
        eventually(is_true, seconds=120)
    finally:
        stop.set()
        thread.join()


def _left_behind(dsn):
    """What is found on the server's connections of the pool: as many transactions at once reach each."""
    with ExitStack() as stack:
        found = []
        for _ in range(POOL_SIZE):
            connection = stack.enter_context(closing(psycopg.connect(dsn, prepare_threshold=None)))
            found += [row[0] for row in connection.execute(_LEFT, (_FITTED,))]
        return found
