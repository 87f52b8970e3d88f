"""A sidecar in a Python program reports what it does, and stops when it is asked to."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading

import pytest

import pgtrickle
from pgtrickle.interfaces.event_log import LOG, visible_log
from pgtrickle.model.errors import NotInstalled
from pgtrickle.model.stream_table import Action
from tests.fixtures.databases import TRICKLE
from tests.fixtures.waiting import eventually

QUERY = "select region, sum(amount) as total from orders group by region"


@pytest.fixture
def trickle(dsn, spark):
    with pgtrickle.connect(dsn, spark=spark.small, stop_timeout=20) as trickle:
        yield trickle


@pytest.fixture
def sales(source, admin, trickle):
    admin.execute("grant create on schema public to trickle")
    source("orders(id int primary key, region text, amount int)", rows=[(1, "north", 10)])
    trickle.create("sales", QUERY)
    return lambda: trickle.status("sales")


def test_a_sidecar_in_the_background_refreshes_and_logs_until_its_block_ends(trickle, sales, caplog):
    caplog.set_level(logging.INFO, "pgtrickle")
    with trickle.run_in_background() as sidecar:
        assert sidecar.is_running
        assert repr(sidecar) == "<BackgroundRun running>"
        assert sidecar.wait(0) is False
        eventually(lambda: sales().is_populated)
    assert not sidecar.is_running
    assert repr(sidecar) == "<BackgroundRun stopped>"
    loaded = [record.getMessage() for record in caplog.records if "REINITIALIZE" in record.getMessage()]
    assert len(loaded) == 1
    assert loaded[0].startswith("public.sales: REINITIALIZE, +1 −0 rows, ")


def test_closing_stops_what_runs_in_the_background(dsn, spark):
    with pgtrickle.connect(dsn, spark=spark.small) as trickle:
        sidecar = trickle.run_in_background()
    assert not sidecar.is_running


def test_the_error_that_ended_a_sidecar_is_logged_and_raised(trickle, admin, caplog):
    trickle.uninstall()
    sidecar = trickle.run_in_background()
    with pytest.raises(NotInstalled):
        sidecar.wait(60)
    with pytest.raises(NotInstalled):
        sidecar.stop()
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert repr(sidecar).startswith("<BackgroundRun failed: PGT-C004")
    with pytest.raises(NotInstalled):
        trickle.run()
    assert len(caplog.records) == 1, "what is raised is not logged as well"


def test_ctrl_c_ends_run_without_a_traceback_and_restores_the_handler(trickle, sales):
    before = signal.getsignal(signal.SIGINT)
    events = []

    def note(event):
        events.append(event)
        os.kill(os.getpid(), signal.SIGINT)

    watchdog = threading.Timer(60, os.kill, (os.getpid(), signal.SIGINT))
    watchdog.start()
    trickle.run(on_event=note)
    watchdog.cancel()
    assert events[0].outcome.action is Action.REINITIALIZE
    assert "outcome=RefreshOutcome(name='public.sales'" in repr(events[0])
    assert sales().is_populated
    assert signal.getsignal(signal.SIGINT) is before


def test_run_shows_its_log_unless_logging_is_configured(capsys, monkeypatch):
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    with visible_log():
        LOG.info("public.sales: FULL")
    LOG.info("not shown")
    shown = capsys.readouterr().err
    assert shown.endswith(" INFO public.sales: FULL\n")
    monkeypatch.setattr(logging.getLogger(), "handlers", [logging.NullHandler()])
    with visible_log():
        LOG.info("for the handlers of the program")
    assert capsys.readouterr().err == ""
    assert LOG.handlers == []


@pytest.mark.slow
@pytest.mark.spark
def test_a_program_that_runs_a_sidecar_says_what_it_does_and_ends_at_ctrl_c(database, source, admin):
    admin.execute("grant create on schema public to trickle")
    source("orders(id int primary key, region text, amount int)", rows=[(1, "north", 10)])
    program = (
        f"import pgtrickle\nwith pgtrickle.connect() as t:\n    t.create('sales', {QUERY!r})\n    t.run()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        env={**os.environ, "PGTRICKLE_DSN": database.dsn(TRICKLE)},
        stderr=subprocess.PIPE,
        text=True,
    )
    lines: list[str] = []
    watchdog = threading.Timer(240, process.kill)
    watchdog.start()
    try:
        assert process.stderr is not None
        for line in process.stderr:
            lines.append(line)
            if "REINITIALIZE" in line:
                process.send_signal(signal.SIGINT)
        code = process.wait()
    finally:
        process.kill()
        watchdog.cancel()
    text = "".join(lines)
    assert (code, "Traceback" in text) == (0, False), text
    assert " INFO public.sales: REINITIALIZE, +1 −0 rows, " in text
    assert "Stopping after the running refreshes" in text
