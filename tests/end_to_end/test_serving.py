"""A running sidecar does the work of commands: they start no Spark, and say the same as without a sidecar."""

from __future__ import annotations

import json
import threading
from typing import Any

import psycopg
import pytest

import pgtrickle
from pgtrickle.commands import refresh as local
from pgtrickle.commands import verify as local_verify
from pgtrickle.commands.serving import refresh_served, verify_served
from pgtrickle.interfaces.cli.application import run
from pgtrickle.model.errors import Busy, Diverged, NoSidecar, PgTrickleError, UnknownStreamTable
from pgtrickle.model.stream_table import Action, RefreshOutcome
from pgtrickle.refresh.engine import Engine
from tests.fixtures.databases import APP, TRICKLE
from tests.fixtures.poolers import POOL_SIZE
from tests.fixtures.sidecars import running
from tests.fixtures.waiting import eventually

QUERY = "select region, sum(amount) as total from orders group by region"


@pytest.fixture
def orders(source):
    return source(
        "orders(id int primary key, region text, amount int)", rows=[(1, "north", 10), (2, "south", 5)]
    )


@pytest.fixture
def served(orders, app, engine, database, way, monkeypatch, pytestconfig):
    """The address of the owner, who did not install, while a sidecar runs; nothing may start a Spark."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a command started a Spark although a sidecar runs")

    monkeypatch.setattr("pgtrickle.pipeline.session.open_spark", refuse)
    app.execute("select pgtrickle.create_stream_table('sales', %s, null)", (QUERY,))
    with running(engine) as sidecar:
        eventually(lambda: sidecar.has_refreshed("sales") or is_served(app))
        if pytestconfig.getoption("--cdc") == "wal":
            # a refresh that the hand-over delays is done again, and would take the change of a test
            eventually(lambda: is_handed_over(engine))
        yield way(database.server, database.name, APP)


def is_handed_over(engine: Engine) -> bool:
    with engine.connection() as connection:
        return connection.execute(
            "select bool_and(capture = 'wal') from pgtrickle.pgt_sources"
        ).fetchone() == (True,)


def is_served(app: psycopg.Connection) -> bool:
    return app.execute("select pgtrickle_internal.is_served()").fetchone() == (True,)


@pytest.mark.light
def test_the_owner_is_served_by_the_command_line_and_python(served, orders, app, monkeypatch, capsys):
    monkeypatch.setenv("PGTRICKLE_DSN", served)
    assert run(["refresh", "sales", "--json"]) == 0
    loaded = json.loads(capsys.readouterr().out)
    assert loaded["name"] == "public.sales"
    orders.change("insert into orders values (3, 'west', 7)")
    assert run(["refresh", "sales"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("Refreshed public.sales: DIFFERENTIAL, +1 −0 rows, ")
    assert out.endswith(").\n")
    assert err == ""
    orders.change("update orders set amount = 8 where id = 3")
    assert run(["sql", "refresh stream table sales"]) == 0
    assert capsys.readouterr().out.startswith("Refreshed public.sales: DIFFERENTIAL, +1 −1 rows, ")
    assert run(["verify", "sales"]) == 0
    assert capsys.readouterr().out.startswith("public.sales equals its query: 3 rows (")
    with pgtrickle.connect(served) as trickle:
        orders.change("delete from orders where id = 1")
        outcome = trickle.refresh("sales")
        assert (outcome.action, outcome.rows_inserted, outcome.rows_deleted) == (Action.DIFFERENTIAL, 0, 1)
        assert [(str(table.name), table.rows) for table in trickle.verify()] == [("public.sales", 2)]
        assert repr(trickle) == "<Trickle without engine>"
    assert sorted(app.execute("select * from sales").fetchall()) == [("south", 5), ("west", 8)]


def test_the_history_of_a_served_refresh_is_that_of_any_other(served, app):
    refresh_served(served, "sales")
    refresh_served(served, "sales")
    newest = app.execute(
        "select action, status, initiated_by from pgtrickle.visible_history order by refresh_id desc"
    ).fetchone()
    assert newest == ("NO_DATA", "COMPLETED", "manual")


def refresh(dsn: str, name: str) -> RefreshOutcome:
    """Refresh by the sidecar that must be there."""
    outcome = refresh_served(dsn, name)
    assert outcome is not None
    return outcome


def raised(act, *arguments) -> tuple[type, str, str, str | None]:
    """The error of a command; it is tried again while the sidecar holds the stream table."""
    found: list[PgTrickleError] = []

    def is_answered() -> bool:
        with pytest.raises(PgTrickleError) as caught:
            act(*arguments)
        found.append(caught.value)
        return type(caught.value) is not Busy

    eventually(is_answered)
    error = found[-1]
    return type(error), error.code, error.message, error.hint


def test_errors_are_the_same_with_and_without_a_sidecar(served, orders, app, engine, database):
    refresh_served(served, "sales")

    def same(name: str = "sales") -> str:
        here, there = raised(local.refresh, engine, name), raised(refresh_served, served, name)
        assert here == there
        return here[2]

    app.execute("select pgtrickle.gate_source('orders')")
    assert "gated" in same()
    app.execute("select pgtrickle.ungate_source('orders')")
    with database.connect(TRICKLE, autocommit=True) as keeper:
        keeper.execute("select pgtrickle.drain(60)")
        assert "drained" in same()
        keeper.execute("select pgtrickle.undrain()")
    app.execute("select pgtrickle.alter_stream_table('sales', status => 'SUSPENDED')")
    assert same() == "public.sales is suspended"
    assert raised(local_verify.verify, engine, "sales") == raised(verify_served, served, "sales", None)
    app.execute("select pgtrickle.resume_stream_table('sales')")
    assert refresh(served, "sales").action is not Action.SKIP
    # a constraint of the owner's that the next row violates
    app.execute("alter table sales add check (total < 1000)")
    orders.change("insert into orders values (4, 'east', 5000)")
    here, there = raised(local.refresh, engine, "sales"), raised(refresh_served, served, "sales")
    assert here == there
    assert "check" in here[2]
    with pytest.raises(UnknownStreamTable):
        refresh_served(served, "nothing")


@pytest.mark.diverges
def test_a_comparison_brings_the_rows_that_differ(served, admin):
    refresh_served(served, "sales")
    admin.execute("set pgtrickle.applying = on; delete from sales where region = 'north'")
    with pytest.raises(Diverged, match="north") as found:
        verify_served(served, "sales", 60.0)
    assert found.value.rows


@pytest.mark.light
def test_the_owner_verifies_in_sql(served, orders):
    refresh(served, "sales")
    with psycopg.connect(served, autocommit=True, prepare_threshold=None) as owner:
        orders.change("insert into orders values (3, 'west', 7)")
        owner.execute("call pgtrickle.verify_stream_table('sales')")


@pytest.mark.diverges
def test_verifying_in_sql_raises_the_rows_that_differ(served, admin, app):
    refresh_served(served, "sales")
    admin.execute("set pgtrickle.applying = on; delete from sales where region = 'north'")
    with pytest.raises(psycopg.Error, match=r"sales does not equal its query: .*north") as found:
        app.execute("call pgtrickle.verify_stream_table('sales', '60 s')")
    assert found.value.sqlstate == Diverged.sqlstate
    assert "repair_stream_table" in str(found.value.diag.message_hint)


def test_others_are_not_served(served, database, admin):
    refresh(served, "sales")
    admin.execute("drop role if exists stranger")
    admin.execute(f"create role stranger login password '{database.server.password}'")
    try:
        stranger = database.dsn("stranger")
        assert "only its owner may refresh" in raised(refresh_served, stranger, "sales")[2]
        assert "only its owner may verify" in raised(verify_served, stranger, "sales", None)[2]
        assert verify_served(stranger, None, None) == []
    finally:
        admin.execute("drop role stranger")


def test_without_a_sidecar_a_command_does_the_work_only_for_who_may(orders, app, database):
    app.execute("select pgtrickle.create_stream_table('sales', %s)", (QUERY,))
    assert refresh_served(database.dsn(TRICKLE), "sales") is None
    assert verify_served(database.dsn(TRICKLE), None, None) is None
    refusal = raised(refresh_served, database.dsn(APP), "sales")
    assert refusal[0] is NoSidecar
    assert refusal[2] == "no sidecar serves this database, and app cannot do its work"
    assert "pgtrickle run" in str(refusal[3])


def test_what_needs_no_spark_is_served_while_spark_starts(orders, app, dsn, spark, database):
    app.execute("select pgtrickle.create_stream_table('sales', %s, null, 'FULL')", (QUERY,))
    app.execute("select pgtrickle.create_stream_table('copy', 'select * from orders')")
    may_start = threading.Event()

    def start() -> Any:
        assert may_start.wait(120)
        return spark

    engine = Engine(dsn, start, max_connections=POOL_SIZE)
    engine.supply.begin()
    try:
        with running(engine) as sidecar:
            eventually(lambda: is_served(app))
            assert refresh(database.dsn(APP), "sales").rows_inserted == 2
            waits = "select pgtrickle_internal.waits_for_spark()"
            eventually(
                lambda: app.execute(waits).fetchone() == ("the sidecar is waiting for Spark: it is starting",)
            )
            assert app.execute("select count(*) from copy").fetchone() == (0,)
            may_start.set()
            eventually(lambda: app.execute("select count(*) from copy").fetchone() == (2,))
        assert sidecar.errors() == []
        failures = app.execute("select count(*) from pgtrickle.visible_history where status <> 'COMPLETED'")
        assert failures.fetchone() == (0,)
    finally:
        may_start.set()
        engine.supply.replace(None)
        engine.close()


def test_a_table_that_waits_for_spark_keeps_no_other_reader_of_its_source_waiting(orders, app, dsn, spark):
    """Both are due at the same moment, and would be refreshed together."""
    app.execute("select pgtrickle.create_stream_table('sales', %s)", (QUERY,))
    newest = "select max(id) as m from orders"
    app.execute("select pgtrickle.create_stream_table('newest', %s, refresh_mode => 'FULL')", (newest,))
    engine = Engine(dsn, lambda: spark, max_connections=POOL_SIZE)
    try:
        with running(engine) as sidecar:
            eventually(lambda: sidecar.has_refreshed("sales") and sidecar.has_refreshed("newest"))
            sidecar.events.clear()
            engine.supply._why = "it is away"
            orders.change("insert into orders values (1000, 'north', 5)")
            eventually(lambda: sidecar.has_refreshed("newest"))
            assert not sidecar.has_refreshed("sales")
            engine.supply._why = None
            eventually(lambda: sidecar.has_refreshed("sales"))
    finally:
        engine.supply.replace(None)
        engine.close()
