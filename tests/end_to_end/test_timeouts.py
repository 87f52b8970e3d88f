"""A refresh cannot run away: past its limit it is canceled, nothing of it is kept, and it is tried again."""

from __future__ import annotations

import time

import psycopg
import pytest

from pgtrickle.commands.refresh import refresh
from pgtrickle.commands.status import table_status
from pgtrickle.commands.verify import verify
from pgtrickle.embedded import SUPERUSER
from pgtrickle.interfaces.connect import connect as connect_python
from pgtrickle.model.errors import RefreshTimedOut, VerifyTimedOut
from pgtrickle.model.settings import SparkPath
from pgtrickle.model.stream_table import Action, Status
from pgtrickle.refresh.engine import Engine
from tests.fixtures.databases import APP
from tests.fixtures.poolers import POOL_SIZE
from tests.fixtures.sidecars import running
from tests.fixtures.waiting import eventually

TOTALS = "select customer, count(*) as n, sum(amount) as total from orders group by customer"
PAIRS = "select count(*) as n from orders a, orders b, orders c, orders d where a.id + b.id < c.id + d.id"
"""A hundred million combinations, which take far longer than any limit here."""


@pytest.fixture
def orders(source):
    return source(
        "orders(id int primary key, customer int, amount int)", rows=[(i, i % 7, i * 3) for i in range(100)]
    )


def active(admin: psycopg.Connection) -> int:
    """How many statements of the product run."""
    row = admin.execute(
        "select count(*) from pg_stat_activity where usename = 'trickle' and state = 'active'"
        " and datname = current_database() and query not like '%tick:%'"
    ).fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.light
def test_a_query_that_runs_on_in_postgresql_is_cancelled_and_the_error_says_what_ran(
    orders, stream_table, app, admin, engine
):
    table = stream_table("select 1::bigint as n", mode="FULL")
    app.execute(
        "select pgtrickle.alter_stream_table(%s, query => %s, refresh_timeout => '1s')", (table.name, PAIRS)
    )
    began = time.monotonic()
    with pytest.raises(RefreshTimedOut) as raised:
        refresh(engine, table.name)
    assert time.monotonic() - began < 30
    assert raised.value.message == (
        f"the refresh of public.{table.name} did not finish within 1 s;"
        " it was evaluating the query in PostgreSQL, and was canceled"
    )
    eventually(lambda: active(admin) == 0)
    assert table.rows() == [(1,)]
    found = table_status(engine.dsn, table.name)
    assert found.consecutive_errors == 1
    assert found.retry_at is not None
    assert (found.last_error or "").startswith("PGT-R007")
    app.execute("select pgtrickle.alter_stream_table(%s, query => 'select 2::bigint as n')", (table.name,))
    refresh(engine, table.name)
    assert table.rows() == [(2,)]
    assert table_status(engine.dsn, table.name).consecutive_errors == 0


def test_an_apply_that_waits_for_ever_is_cancelled_and_nothing_is_half_applied(
    orders, stream_table, app, engine, database
):
    table = stream_table(TOTALS)
    before = sorted(table.rows(), key=repr)
    app.execute("update orders set amount = amount + 1")
    app.execute("select pgtrickle.alter_stream_table(%s, refresh_timeout => '10s')", (table.name,))
    with database.connect(SUPERUSER) as holder:
        holder.execute(f"select from {table.name} for update")
        with pytest.raises(RefreshTimedOut, match=r"within 10 s; it was applying the result"):
            refresh(engine, table.name)
        assert sorted(table.rows(), key=repr) == before
    app.execute("select pgtrickle.alter_stream_table(%s, refresh_timeout => 'default')", (table.name,))
    refresh(engine, table.name)
    table.equals_its_query()
    verify(engine, table.name)


def test_a_job_that_reads_for_too_long_is_cancelled_on_spark_and_in_its_tasks(
    orders, stream_table, app, admin, dsn, spark
):
    admin.execute(
        "create function slowly(int) returns int language plpgsql immutable as"
        " 'begin perform pg_sleep(0.3); return $1; end'"
    )
    engine = Engine(dsn, lambda: spark, SparkPath.DISTRIBUTED, max_connections=POOL_SIZE, refresh_timeout=4)
    app.execute("select pgtrickle.create_stream_table('slowly', 'select slowly(id) as id from orders', null)")
    with pytest.raises(RefreshTimedOut, match=r"within 4 s"):
        refresh(engine, "slowly")
    eventually(lambda: active(admin) == 0)
    assert table_status(dsn, "slowly").consecutive_errors == 1
    engine._spark = None
    engine.close()


def test_timeouts_in_a_row_suspend_a_table_and_leave_the_others_alone(orders, stream_table, app, engine):
    other = stream_table("select max(id) as m from orders", mode="FULL")
    app.execute(
        "select pgtrickle.create_stream_table('pairs', %s, '1s', 'FULL', refresh_timeout => '500ms')",
        (PAIRS,),
    )
    app.execute("select pgtrickle.alter_stream_table(%s, schedule => '1s')", (other.name,))
    with running(engine, max_errors=2) as sidecar:
        eventually(lambda: table_status(engine.dsn, "pairs").status is Status.SUSPENDED)
        app.execute("insert into orders values (1000, 1, 1)")
        eventually(lambda: other.rows() == [(1000,)])
    assert {type(error) for error in sidecar.errors()} == {RefreshTimedOut}


def test_a_limit_is_set_in_sql_in_python_and_in_statements_and_goes_back_to_the_default(
    orders, app, dsn, database
):
    app_dsn = database.dsn("app")
    with connect_python(app_dsn) as trickle:
        trickle.create_stream_table("totals", TOTALS, None, refresh_timeout="1h30m")
        assert trickle.status("totals").refresh_timeout == 5400
        for given, seconds in (("5min", 300), ("250ms", 0.25), ("90", 90), ("none", 0), ("default", None)):
            trickle.alter_stream_table("totals", refresh_timeout=given)
            assert trickle.status("totals").refresh_timeout == seconds
    app.execute("select pgtrickle.alter_stream_table('totals', refresh_timeout => '2 minutes')")
    app.execute("select pgtrickle.alter_stream_table('totals', schedule => '5s')")
    assert table_status(dsn, "totals").refresh_timeout == 120
    for wrong in ("soon", "-5s", "1ms", "'; drop"):
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="is not a value of refresh_timeout"):
            app.execute("select pgtrickle.alter_stream_table('totals', refresh_timeout => %s)", (wrong,))


@pytest.fixture
def naps(source, admin):
    """A source whose rows take as many seconds to evaluate as they say."""
    admin.execute(
        "create function slept(int) returns int language plpgsql immutable as"
        " 'begin perform pg_sleep($1); return $1; end'"
    )
    return source("naps(id int primary key, seconds int)", rows=[(1, 0)])


def test_a_comparison_that_takes_too_long_is_cancelled_and_blames_nobody(
    orders, stream_table, admin, engine, connect
):
    admin.execute(
        "create function passed(int) returns int language plpgsql immutable as"
        " 'begin perform pg_advisory_xact_lock_shared(42); return $1; end'"
    )
    table = stream_table("select id, passed(id) as passed from orders", mode="DIFFERENTIAL")
    gate = connect(APP)
    gate.execute("select pg_advisory_lock(42)")
    with pytest.raises(VerifyTimedOut) as raised:
        verify(engine, table.name, 1.0)
    assert raised.value.message == (
        f"the comparison of public.{table.name} with its query did not finish within 1 s;"
        " it was evaluating the query in PostgreSQL, and was canceled"
    )
    eventually(lambda: active(admin) == 0)
    found = table_status(engine.dsn, table.name)
    assert (found.status, found.consecutive_errors, found.repairs) == (Status.ACTIVE, 0, 0)
    gate.execute("select pg_advisory_unlock(42)")
    assert len(verify(engine, table.name, None)) == 1


def test_a_comparison_that_has_to_follow_an_endless_query_first_is_cancelled_too(
    orders, stream_table, app, admin, engine
):
    orders.change("delete from orders where id >= 5")
    table = stream_table(PAIRS, mode="FULL")
    orders.change("insert into orders select n, 0, 0 from generate_series(5, 100) n")
    with pytest.raises(VerifyTimedOut, match="within 1 s"):
        verify(engine, table.name, 1.0)
    eventually(lambda: active(admin) == 0)
    assert table_status(engine.dsn, table.name).consecutive_errors == 0


@pytest.mark.diverges
def test_evidence_that_takes_too_long_to_collect_does_not_keep_a_table_from_its_repair(
    naps, stream_table, app, admin, engine
):
    table = stream_table("select id, slept(seconds) as seconds from naps", mode="DIFFERENTIAL")
    naps.change("insert into naps values (2, 4)")
    table.refresh()
    admin.execute("set pgtrickle.applying = on")
    admin.execute(f"delete from {table.name} where id = 1")
    admin.execute("reset pgtrickle.applying")
    app.execute("select pgtrickle.alter_stream_table(%s, refresh_timeout => '10s')", (table.name,))
    naps.change("delete from naps where id = 1")
    # the comparison would take four seconds, and so does the load
    assert table.refresh().action is Action.REINITIALIZE
    table.equals_its_query()
    found = admin.execute("select unexpected, missing, repaired_at is not null from pgtrickle.pgt_repairs")
    assert found.fetchall() == [(None, None, True)]
    table.refresh()
