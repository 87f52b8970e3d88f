"""The Python interface: one object does all that can be asked."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

import pgtrickle
from pgtrickle.model.errors import (
    CommandRefused,
    ConnectionFailed,
    Diverged,
    Drained,
    SourceGated,
    UnknownStreamTable,
)
from pgtrickle.model.stream_table import Action, RefreshMode, Status


@pytest.fixture
def trickle(dsn, spark):
    with pgtrickle.connect(dsn, spark=spark.small) as trickle:
        yield trickle


@pytest.fixture
def orders(source, admin):
    admin.execute("grant create on schema public to trickle")
    return source(
        "orders(id int primary key, region text, amount int)", rows=[(1, "north", 10), (2, "south", 5)]
    )


QUERY = "select region, sum(amount) as total from orders group by region"


def test_a_stream_table_from_creation_to_drop(trickle, orders, admin):
    assert trickle.install()
    trickle.create("sales", QUERY, schedule="1s", refresh_mode="AUTO")
    loaded = trickle.refresh("sales")
    assert (loaded.action, loaded.rows_inserted) == (Action.REINITIALIZE, 2)
    orders.change("delete from orders where id = 2", "insert into orders values (3, 'north', 1)")
    followed = trickle.refresh("sales")
    assert (followed.action, followed.rows_inserted + followed.rows_deleted > 0) == (
        Action.DIFFERENTIAL,
        True,
    )
    assert admin.execute("select * from sales").fetchall() == [("north", 11)]
    assert trickle.explain("sales").effective_mode is RefreshMode.DIFFERENTIAL
    assert [past.action for past in trickle.history("sales")] == [Action.DIFFERENTIAL, Action.REINITIALIZE]
    assert [table.rows for table in trickle.verify("sales")] == [1]
    assert trickle.status("sales").status is Status.ACTIVE
    trickle.drop("sales")
    assert trickle.list() == []


def test_refreshes_wait_for_gates_and_draining(trickle, orders, admin):
    admin.execute("grant insert on orders to trickle")
    trickle.create("sales", QUERY)
    assert trickle.gate("orders") == ["public.sales"]
    with pytest.raises(SourceGated):
        trickle.refresh("sales")
    trickle.ungate("orders")
    trickle.drain(timeout=5)
    with pytest.raises(Drained):
        trickle.refresh("sales")
    trickle.undrain()
    assert trickle.refresh("sales").action is Action.REINITIALIZE


def test_what_is_altered_is_what_was_given(trickle, orders):
    trickle.create("sales", QUERY, schedule=None)
    assert trickle.status("sales").schedule == "manual"
    trickle.alter("sales", schedule="5m")
    altered = trickle.status("sales")
    assert (altered.schedule, altered.refresh_mode) == ("5m", RefreshMode.AUTO)
    trickle.alter("sales", status="SUSPENDED")
    assert trickle.status("sales").status is Status.SUSPENDED
    trickle.resume("sales")
    assert trickle.status("sales").status is Status.INITIALIZING


@pytest.mark.diverges
def test_a_stream_table_that_was_tampered_with_is_found_out(trickle, orders, admin):
    trickle.create("sales", QUERY)
    trickle.refresh("sales")
    # a superuser gets past the guard without leaving a trace
    admin.execute("set pgtrickle.applying = on; delete from sales where region = 'north'")
    with pytest.raises(Diverged, match="north"):
        trickle.verify("sales")
    assert trickle.repair("sales") == ["public.sales will be computed again; only the difference is written."]
    trickle.refresh("sales")
    trickle.verify("sales")
    assert trickle.status("sales").repairs == 1


def test_errors_have_their_class(trickle, orders):
    with pytest.raises(UnknownStreamTable):
        trickle.refresh("nope")
    with pytest.raises(CommandRefused, match="syntax error"):
        trickle.create("sales", "selec")
    with pytest.raises(ConnectionFailed):
        pgtrickle.connect("host=127.0.0.1 port=1 connect_timeout=2")


def test_run_serves_schedules_until_it_is_stopped(trickle, orders, admin):
    trickle.create("sales", QUERY, schedule="calculated")
    stop, seen = threading.Event(), []

    def note(event):
        seen.append(event)
        if len(seen) == 1:
            orders.change("insert into orders values (3, 'west', 7)")
        elif event.outcome is None or event.outcome.action is Action.DIFFERENTIAL:
            stop.set()

    watchdog = threading.Timer(60, stop.set)
    watchdog.start()
    trickle.run(stop, note)
    watchdog.cancel()
    assert [event.error for event in seen] == [None] * len(seen)
    assert seen[-1].outcome.action is Action.DIFFERENTIAL
    assert sorted(admin.execute("select * from sales").fetchall())[-1] == ("west", 7)


def test_commands_that_a_sidecar_serves_import_no_spark_and_no_progress_bar():
    script = (
        "import sys, pgtrickle.interfaces.cli.refresh, pgtrickle.interfaces.cli.verify;"
        " assert not {'pyspark', 'rich.progress', 'sqlglot', 'pyarrow'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
