"""`pgtrickle run` ends in time when it is told to, also in the middle of a refresh, and loses nothing."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from pgtrickle.commands.refresh import refresh
from pgtrickle.commands.verify import verify
from tests.fixtures.databases import APP
from tests.fixtures.waiting import eventually

WAITS = "select count(*) from pg_locks where locktype = 'advisory' and objid = 42 and not granted"


@pytest.mark.usefixtures("shared_spark")
def test_a_refresh_that_does_not_end_in_time_is_given_up_and_counts_as_no_failure(
    cli, source, app, admin, connect, engine
):
    orders = source("orders(id int primary key, amount int)", rows=[(1, 10)])
    app.execute("select pgtrickle.create_stream_table('total', 'select sum(amount) as total from orders')")
    refresh(engine, "total")
    admin.execute(
        "create function wait_here() returns trigger language plpgsql as"
        " 'begin perform pg_advisory_xact_lock(42); return new; end'"
    )
    app.execute(
        "create trigger wait_here before insert or update on total for each row execute function wait_here()"
    )
    gate = connect(APP)
    gate.execute("select pg_advisory_lock(42)")
    orders.change("insert into orders values (2, 5)")
    told_at: list[float] = []

    def tell_to_stop() -> None:
        try:
            eventually(lambda: app.execute(WAITS).fetchone() == (1,), seconds=200)
        finally:
            told_at.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGTERM)

    teller = threading.Thread(target=tell_to_stop)
    teller.start()
    answer = cli("run", "--stop-timeout", "0.5", role="trickle")
    took = time.monotonic() - told_at[0]
    teller.join()
    assert answer.exit_code == 0
    assert "Cancelling the refreshes that still run after 0.5 s." in answer.err
    assert answer.err.splitlines()[-1].endswith("  Stopped.")
    assert took < 30
    row = app.execute("select status, consecutive_errors, last_error from pgtrickle.stream_tables_info")
    assert row.fetchone() == ("ACTIVE", 0, None)
    assert app.execute("select total from total").fetchall() == [(10,)]
    gate.execute("select pg_advisory_unlock(42)")
    gate.commit()
    refresh(engine, "total")
    verify(engine, "total")
    assert app.execute("select total from total").fetchall() == [(15,)]
