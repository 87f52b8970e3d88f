"""Stopping: what is at hand finishes, or is given up in time; either way nothing is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import psycopg
import pytest

from pgtrickle.commands.refresh import refresh
from pgtrickle.commands.verify import verify
from pgtrickle.model.errors import Abandoned
from pgtrickle.refresh.engine import Engine
from tests.fixtures.databases import APP, TRICKLE
from tests.fixtures.waiting import eventually


def no_spark() -> None:
    raise AssertionError("nothing here needs Spark")


def test_what_is_given_up_ends_in_whatever_thread_it_runs(database, admin):
    engine = Engine(database.dsn(TRICKLE), no_spark)  # type: ignore[arg-type]
    ended: list[str | None] = []

    def work() -> None:
        try:
            with engine.connection() as connection:
                connection.execute("select pg_sleep(120)")
        except psycopg.Error as error:
            ended.append(error.sqlstate)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    sleeping = (
        "select count(*) from pg_stat_activity where query = 'select pg_sleep(120)' and state = 'active'"
    )
    eventually(lambda: admin.execute(sleeping).fetchone() == (3,))
    engine.abandon()
    for thread in threads:
        thread.join(30)
    assert ended == ["57014"] * 3
    assert engine.is_abandoned
    with pytest.raises(Abandoned), engine.connection():
        pass
    engine.close()


@pytest.mark.slow
def test_a_refresh_that_does_not_end_in_time_is_given_up_and_counts_as_no_failure(
    database, source, app, connect, engine
):
    orders = source("orders(id int primary key, amount int)", rows=[(1, 10)])
    app.execute("select pgtrickle.create_stream_table('total', 'select sum(amount) as total from orders')")
    refresh(engine, "total")
    app.execute(
        "create function wait_here() returns trigger language plpgsql security definer as"
        " 'begin perform pg_advisory_xact_lock(42); return new; end'"
    )
    app.execute(
        "create trigger wait_here before insert or update on total for each row execute function wait_here()"
    )
    gate = connect(APP)
    gate.execute("select pg_advisory_lock(42)")
    orders.change("insert into orders values (2, 5)")
    process = subprocess.Popen(
        [sys.executable, "-m", "pgtrickle.interfaces.cli", "run", "--stop-timeout", "0.5"],
        env={**os.environ, "PGTRICKLE_DSN": database.dsn(TRICKLE)},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    watchdog = threading.Timer(250, process.kill)
    watchdog.start()
    try:
        waits = "select count(*) from pg_locks where locktype = 'advisory' and objid = 42 and not granted"
        eventually(lambda: app.execute(waits).fetchone() == (1,), seconds=200)
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate()
        took = time.monotonic() - began
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()
    assert process.returncode == 0, err
    assert "Giving up what is not done after 0.5 s; nothing of it is kept." in err
    assert err.splitlines()[-1] == "Stopped."
    assert took < 60
    row = app.execute("select status, consecutive_errors, last_error from pgtrickle.stream_tables_info")
    assert row.fetchone() == ("ACTIVE", 0, None)
    assert app.execute("select total from total").fetchall() == [(10,)]
    gate.execute("select pg_advisory_unlock(42)")
    gate.commit()
    refresh(engine, "total")
    verify(engine, "total")
    assert app.execute("select total from total").fetchall() == [(15,)]
