"""Timeouts that a role or a database sets: idle ones do no harm, others are named when they end a refresh."""

from __future__ import annotations

import pytest

from pgtrickle.model.errors import RefreshFailed
from pgtrickle.model.settings import SparkPath
from tests.fixtures.databases import TRICKLE
from tests.fixtures.waiting import eventually

SLOW = "select count(*) as n from numbers a, numbers b, numbers c where a.x + b.x < c.x"


@pytest.fixture
def role(admin):
    """Gives the role of the sidecar settings for as long as the test takes."""
    yield lambda name, value: admin.execute(f"alter role {TRICKLE} set {name} = '{value}'")
    admin.execute(f"alter role {TRICKLE} reset all")


@pytest.mark.every_postgres
def test_idle_timeouts_do_not_end_a_refresh_while_spark_computes(role, source, stream_table, engine, admin):
    orders = source("orders(id int primary key, amount int)", rows=[(i, i) for i in range(20)])
    role("idle_in_transaction_session_timeout", "300ms")
    role("idle_session_timeout", "500ms")
    engine.path = SparkPath.DISTRIBUTED
    total = stream_table(
        "select amount % 3 as k, sum(amount) as total, max(amount) as most from orders group by 1"
    )
    orders.change("delete from orders where id > 10")
    total.refresh()
    total.equals_its_query()
    end = "select pg_terminate_backend(pid) from pg_stat_activity where usename = %s and state = 'idle'"
    admin.execute(end, (TRICKLE,))
    gone = "select count(*) from pg_stat_activity where usename = %s"
    eventually(lambda: admin.execute(gone, (TRICKLE,)).fetchone() == (0,))
    orders.change("insert into orders values (30, 30)")
    total.refresh()
    total.equals_its_query()


@pytest.mark.parametrize("name", ["statement_timeout", "transaction_timeout"])
def test_the_timeout_that_ended_a_refresh_is_named(role, source, stream_table, pg_version, name):
    if name == "transaction_timeout" and pg_version < 17:
        pytest.skip("PostgreSQL 17 was the first to have it")
    source("numbers(x int)", rows=[(i,) for i in range(1000)])
    table = stream_table(SLOW, mode="FULL", loads=False)
    role(name, "1s")
    with pytest.raises(RefreshFailed) as failed:
        table.refresh()
    assert name in str(failed.value)
