"""`pgtrickle run` in a process of its own, with its own Spark: follows, tells, and stops when told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.fixtures.databases import TRICKLE


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
        loaded = next(events)
        orders.change("insert into orders values (2, 5)")
        followed = next(event for event in events if event["action"] != "NO_DATA")
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
    assert "small changes computed in place: yes" in err
    assert "connected directly, with at most 10 connections" in err
    assert err.splitlines()[-1] == "Stopped."
    assert any("java" in title for title in titles)
    assert [title for title in titles if database.server.password in title] == []
    assert database.server.password not in err


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
