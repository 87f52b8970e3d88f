"""`pgtrickle run` in a process of its own, with its own Spark: follows, tells, and stops when told."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.fixtures.databases import TRICKLE
from tests.fixtures.waiting import eventually


@pytest.mark.slow
@pytest.mark.spark
def test_the_sidecar_follows_until_sigterm_and_keeps_its_password(database, source, app):
    orders = source("orders(id int primary key, amount int)", rows=[(1, 10)])
    app.execute("select pgtrickle.create_stream_table('total', 'select sum(amount) as total from orders')")
    command = [
        sys.executable,
        "-m",
        "pgtrickle.interfaces.cli",
        "run",
        "--json",
        "--dsn",
        database.dsn(TRICKLE),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    watchdog = threading.Timer(280, process.kill)
    watchdog.start()
    try:
        assert process.stdout is not None
        events = (json.loads(line) for line in process.stdout)
        # a load that takes long is reported by notes
        loaded = next(event for event in events if event["action"])
        orders.change("insert into orders values (2, 5)")
        followed = next(event for event in events if event["action"] not in (None, "NO_DATA"))
        rows = app.execute("select total from total").fetchall()
        titles = [_title(pid) for pid in _family(process.pid)]
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate()
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()
    assert (loaded["name"], loaded["action"], loaded["error"]) == ("public.total", "REINITIALIZE", None)
    assert (followed["action"], followed["rows_inserted"], followed["error"]) == ("DIFFERENTIAL", 1, None)
    assert rows == [(15,)]
    assert process.returncode == 0
    assert "Warming up: Spark on local[*] is starting." in err
    assert re.search(r"Ready after \d+\.\d s\. Small changes are computed in place\.", err)
    assert not re.search("incubator|WARN|log4j|Traceback", err)
    assert "connected directly, with at most 10 connections" in err
    assert json.loads(err.splitlines()[-1])["message"] == "Stopped."
    assert any("java" in title for title in titles)
    assert [title for title in titles if database.server.password in title] == []
    assert database.server.password not in err


@pytest.mark.slow
@pytest.mark.spark
def test_ctrl_c_during_the_start_ends_quietly_and_leaves_nothing(database, tmp_path):
    command = [sys.executable, "-m", "pgtrickle.interfaces.cli", "run", "--dsn", database.dsn(TRICKLE)]
    environment = os.environ | {"TMPDIR": str(tmp_path), "PGTRICKLE_CACHE_DIR": "off"}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        eventually(lambda: any("SparkSubmit" in _title(pid) for pid in _family(process.pid)[1:]), seconds=120)
        started = _family(process.pid)[1:]
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130
    assert not re.search("incubator|WARN|log4j|Traceback|Exception", err)
    assert len(err.splitlines()) <= 3
    eventually(lambda: not any("SparkSubmit" in _title(pid) for pid in started))
    assert list(tmp_path.glob("pgtrickle-spark-*")) == []


def test_a_role_that_may_not_serve_is_told_before_spark_starts(cli, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("pgtrickle.pipeline.session.open_spark", refuse)
    answer = cli("run", role="app")
    assert answer.exit_code == 2
    assert "belongs to the role trickle" in answer.err
    assert len(answer.err.splitlines()) == 1


def _family(pid: int) -> list[int]:
    """A process and all its descendants."""
    parents = {}
    for entry in os.listdir("/proc"):
        try:
            stat = Path(f"/proc/{entry}/stat").read_text() if entry.isdigit() else ""
        except OSError:
            continue
        if stat:
            parents[int(entry)] = int(stat.rpartition(")")[2].split()[1])
    family = [pid]
    for member in family:
        family += [child for child, parent in parents.items() if parent == member]
    return family


def _title(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""
