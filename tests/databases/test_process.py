"""`pgtrickle run` for several databases in a process of its own, on one Spark."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import pgtrickle
from tests.fixtures.waiting import eventually

COMMAND = [sys.executable, "-m", "pgtrickle.interfaces.cli", "run", "--json"]
QUERY = "select amount, count(*) as n from orders group by amount"

pytestmark = [pytest.mark.slow, pytest.mark.spark]


def follow(shop):
    shop.app.execute("select pgtrickle.create_stream_table('counts', %s, '100ms', 'DIFFERENTIAL')", (QUERY,))


def shows_counts(shop):
    difference = f"(table counts except all {QUERY}) union all ({QUERY} except all table counts)"
    eventually(
        lambda: (
            shop.app.execute("select is_populated from pgtrickle.stream_tables_info").fetchall()
            == [(True,)] * 2
        )
    )
    eventually(lambda: shop.app.execute(difference).fetchall() == [])


def test_one_process_follows_changes_in_two_databases(shop, tmp_path):
    first, second = shop(), shop()
    for one in (first, second):
        follow(one)
        one.write(1)
    addresses = [part for one in (first, second) for part in ("--dsn", one.database.dsn())]
    process = subprocess.Popen(
        [*COMMAND, *addresses], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    watchdog = threading.Timer(200, process.kill)
    watchdog.start()
    try:
        for amount in (1, 2):
            first.write(amount)
            second.write(amount + 1)
            shows_counts(first)
            shows_counts(second)
        title = Path(f"/proc/{process.pid}/cmdline").read_bytes().decode()
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=60)
    finally:
        watchdog.cancel()
        process.kill()
    assert process.returncode == 0
    events = [json.loads(line) for line in said.splitlines()]
    assert {event["database"] for event in events if event["name"] == "public.counts"} == {
        first.name,
        second.name,
    }
    assert first.database.server.password not in said + title


def test_python_serves_the_databases_of_a_file(shop, spark, tmp_path):
    first, second = shop(), shop()
    secret = tmp_path / "secret"
    secret.write_text(first.database.server.password)
    address = f"host=127.0.0.1 port={first.database.server.port} user=trickle dbname="
    file = tmp_path / "databases.toml"
    file.write_text(
        "".join(
            f'[database.{one.name}]\ndsn = "{address}{one.name}"\npassword = {{ file = "{secret}" }}\n'
            for one in (first, second)
        )
    )
    for one in (first, second):
        follow(one)
    with pgtrickle.connect(spark=spark.small, config=str(file), stop_timeout=20) as trickle:
        with trickle.run_in_background():
            for one in (first, second):
                one.write(5)
                shows_counts(one)
        assert [(one.database, one.stream_tables) for one in trickle.list_all()] == [
            (first.name, 2),
            (second.name, 2),
        ]
