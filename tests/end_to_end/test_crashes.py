"""Killing any process at any point loses nothing and doubles nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

import psycopg
import pytest

from pgtrickle.apply.apply import apply_changes
from pgtrickle.commands.refresh import refresh
from pgtrickle.commands.verify import verify
from pgtrickle.embedded import SUPERUSER
from pgtrickle.model.errors import PgTrickleError
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.execute import apply_result
from tests.end_to_end.stopping_sidecar import STEPS
from tests.fixtures.databases import APP, TEMPLATE, TRICKLE, create_database
from tests.fixtures.spark import gateway_of
from tests.fixtures.waiting import eventually

QUERY = (
    "select customer, count(*) as n, sum(amount) as total, max(amount) as top from orders group by customer"
)
CHANGES = (
    "update orders set amount = amount + 1 where id < 50",
    "delete from orders where id between 50 and 60",
    "insert into orders select i, i % 5, i from generate_series(200, 220) i",
)


@pytest.fixture
def orders(source):
    return source(
        "orders(id int primary key, customer int, amount int)", rows=[(i, i % 7, i * 3) for i in range(100)]
    )


@contextmanager
def sidecar(
    dsn: str, name: str, step: str, gateway: Mapping[str, str] = MappingProxyType({})
) -> Iterator[subprocess.Popen[str]]:
    """A sidecar in a process group of its own, so that killing it takes its JVM along, if it has one."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.end_to_end.stopping_sidecar", name, step],
        env={**os.environ, **gateway, "PGTRICKLE_DSN": dsn},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("jvm", ["joined", pytest.param("its own", marks=pytest.mark.thorough)])
@pytest.mark.parametrize("step", STEPS)
def test_a_sidecar_killed_after_a_step_leaves_the_next_refresh_correct(
    orders, stream_table, engine, spark, dsn, step, jvm
):
    table = stream_table(QUERY)
    before = sorted(table.rows(), key=repr)
    orders.change(*CHANGES)
    gateway = gateway_of(spark) if jvm == "joined" else {}
    with sidecar(dsn, table.name, step, gateway) as process:
        assert process.stdout is not None
        assert [next(process.stdout).strip(), next(process.stdout).strip()] == ["started", "halted"]
    assert sorted(table.rows(), key=repr) == before
    refresh(engine, table.name)
    table.equals_its_query()
    verify(engine, table.name)


@pytest.mark.slow
def test_a_sidecar_killed_in_the_middle_of_its_writes_leaves_the_next_refresh_correct(
    orders, stream_table, engine, dsn, app, admin, connect
):
    table = stream_table(QUERY)
    admin.execute(
        "create function wait_here() returns trigger language plpgsql as"
        " 'begin perform pg_advisory_xact_lock(42); return new; end'"
    )
    app.execute(
        f"create trigger wait_here before insert or update on {table.name}"
        " for each row execute function wait_here()"
    )
    gate = connect(APP)
    gate.execute("select pg_advisory_lock(42)")
    orders.change(*CHANGES)
    with sidecar(dsn, table.name, "none"):
        eventually(lambda: _waits_for_the_gate(app), seconds=120)
    gate.execute("select pg_advisory_unlock(42)")
    gate.commit()
    refresh(engine, table.name)
    table.equals_its_query()
    verify(engine, table.name)


def _waits_for_the_gate(connection: psycopg.Connection) -> bool:
    row = connection.execute(
        "select count(*) from pg_locks where locktype = 'advisory' and not granted"
    ).fetchone()
    return row is not None and row[0] > 0


@pytest.mark.light
def test_a_server_restarted_in_the_middle_of_an_apply_loses_nothing(
    own_server, templates, way, spark, monkeypatch
):
    templates.ensure(own_server)
    database = create_database(own_server, "restarted", TEMPLATE)
    with database.connect(APP, autocommit=True) as app:
        app.execute("create table orders (id int primary key, customer int, amount int)")
        app.execute(f"grant select, trigger on orders to {TRICKLE}")
        app.execute("insert into orders select i, i % 7, i * 3 from generate_series(0, 99) i")
        app.execute("select pgtrickle.create_stream_table('totals', %s, null)", (QUERY,))
        engine = Engine(way(own_server, database.name, TRICKLE), lambda: spark)
        refresh(engine, "totals")
        for statement in CHANGES:
            app.execute(statement)

    def crash(*arguments, **options):
        apply_changes(*arguments, **options)
        own_server.kill()
        own_server.start()
        raise psycopg.OperationalError("the server went away")

    with monkeypatch.context() as patched:
        patched.setattr(apply_result, "apply_changes", crash)
        with pytest.raises((PgTrickleError, psycopg.Error)):
            refresh(engine, "totals")
    refresh(engine, "totals")
    verify(engine, "totals")
    with database.connect(SUPERUSER) as admin:
        assert admin.execute("select count(*) from totals").fetchone() == (7,)
    engine._spark = None
    engine.close()
