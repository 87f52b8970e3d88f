"""A sidecar on a standalone cluster: a master and two workers, each in a process of its own."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import psycopg
import pytest

from pgtrickle.embedded.host import free_port
from tests.fixtures.clusters import DRIVER, Standalone, standalone_cluster
from tests.fixtures.sidecar_processes import SidecarProcess, sidecar_process
from tests.fixtures.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(600)]
SECONDS = 240.0
QUERY = "select id, checked(amount) as amount from orders"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with standalone_cluster(tmp_path_factory.mktemp("standalone")) as cluster:
        yield cluster


@pytest.fixture
def orders(source, app, admin):
    """300 orders, and a stream table whose tasks wait while somebody holds the advisory lock 42."""
    admin.execute(
        "create function checked(int) returns int language plpgsql immutable parallel restricted as"
        " 'begin perform pg_advisory_xact_lock_shared(42); return $1; end'"
    )
    orders = source("orders(id int primary key, amount int)")
    orders.change("insert into orders select n, n from generate_series(1, 300) n")
    app.execute("select pgtrickle.create_stream_table('checked', %s, '1s', 'DIFFERENTIAL')", (QUERY,))
    return orders


@contextmanager
def tasks_waiting(app: psycopg.Connection) -> Iterator[None]:
    """Let every task that reads orders wait until the block ends."""
    app.execute("select pg_advisory_lock(42)")
    try:
        yield
    finally:
        app.execute("select pg_advisory_unlock(42)")


def waiting_tasks(app: psycopg.Connection) -> set[int]:
    found = app.execute("select pid from pg_locks where locktype = 'advisory' and not granted")
    return {pid for (pid,) in found}


def check_rows(app: psycopg.Connection, running: SidecarProcess) -> None:
    running.await_rows(app, "select * from checked", "select id, amount from orders")


def test_tasks_follow_and_the_password_is_nowhere_but_in_the_driver(
    cluster, orders, app, dsn, database, tmp_path
):
    events = tmp_path / "events"
    events.mkdir()
    port = free_port()
    options = {
        "spark.ui.enabled": "true",
        "spark.ui.port": str(port),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
    }
    with sidecar_process(cluster.url, dsn, tmp_path / "sidecar.log", **DRIVER, **options) as running:
        check_rows(app, running)
        orders.change(
            "update orders set amount = amount + 1 where mod(id, 3) = 0", "delete from orders where id < 9"
        )
        check_rows(app, running)
        ui = f"http://127.0.0.1:{port}"
        places = [
            "environment/",
            "SQL/",
            "SQL/execution/?id=1",
            "jobs/",
            "jobs/job/?id=1",
            "stages/",
            "executors/",
        ]
        application = pages([f"{ui}/api/v1/applications"])
        assert "pgtrickle" in application
        shown = pages([f"{ui}/{place}" for place in places])
        assert "pgtrickle_" in shown
    recorded = "".join(file.read_text() for file in events.iterdir())
    assert "SparkListenerSQLExecutionStart" in recorded
    logs = cluster.logs()
    assert "CoarseGrainedExecutorBackend" in logs
    password = database.server.password
    for name, text in {"pages": shown, "events": recorded, "logs": logs, "sidecar": running.said()}.items():
        assert password not in text, f"the password is in the {name}"


def pages(addresses: list[str]) -> str:
    texts = []
    for address in addresses:
        with urlopen(address, timeout=30) as answer:
            texts.append(answer.read().decode())
    return "\n".join(texts)


@pytest.mark.thorough
def test_nothing_is_lost_or_doubled_when_executors_and_the_driver_are_killed(
    cluster, orders, app, database, tmp_path
):
    dsn, passfile = without_password(database, tmp_path)
    options = ("--task-dsn", f"passfile={passfile}")
    log = tmp_path / "sidecar.log"
    with sidecar_process(cluster.url, dsn, log, *options, **DRIVER) as running:
        with tasks_waiting(app):
            # a first load
            kill_at_work(cluster, app, set())
        check_rows(app, running)
        with tasks_waiting(app):
            orders.change("update orders set amount = -amount where mod(id, 2) = 0")
            kill_at_work(cluster, app, set())
        check_rows(app, running)
        with tasks_waiting(app):
            orders.change("delete from orders where mod(id, 5) = 0", "insert into orders values (1000, 1)")
            eventually(lambda: bool(waiting_tasks(app)), seconds=SECONDS)
            running.process.kill()
            running.process.wait(30)
    # the tasks of the dead driver end by themselves; a new driver carries on
    with sidecar_process(cluster.url, dsn, log, *options, **DRIVER) as running:
        check_rows(app, running)
    status = app.execute(
        "select status, consecutive_errors from pgtrickle.stream_tables_info where pgt_name = 'checked'"
    )
    assert status.fetchone() == ("ACTIVE", 0)


def kill_at_work(cluster: Standalone, app: psycopg.Connection, known: set[int]) -> None:
    """Kill every executor once a task waits."""
    eventually(lambda: bool(waiting_tasks(app) - known), seconds=SECONDS)
    killed = cluster.executors()
    assert killed
    for executor in killed:
        os.kill(executor, signal.SIGKILL)
    eventually(lambda: not set(killed) & set(cluster.executors()), seconds=SECONDS)


def without_password(database, directory: Path) -> tuple[str, Path]:
    """An address whose password is in a file, as on machines that the driver does not share."""
    server = database.server
    passfile = directory / "pgpass"
    passfile.write_text(f"127.0.0.1:{server.port}:*:*:{server.password}\n")
    passfile.chmod(0o600)
    return database.dsn(), passfile


@pytest.mark.thorough
def test_a_worker_that_cannot_reach_the_server_is_named_and_suspends_nothing(
    cluster, orders, app, dsn, tmp_path
):
    closed, log = free_port(), tmp_path / "sidecar.log"
    with sidecar_process(cluster.url, dsn, log, "--task-dsn", f"port={closed}", **DRIVER) as running:

        def errors() -> list[str]:
            assert running.process.poll() is None, running.said()
            found = app.execute(
                "select error_message from pgtrickle.get_refresh_history('checked') where status = 'FAILED'"
            )
            return [text for (text,) in found]

        eventually(lambda: bool(errors()), seconds=SECONDS)
        (error, *_) = errors()
    assert error.startswith("PGT-J004: a Spark executor on ")
    assert f":{closed}" in error
    assert "--task-dsn" in error
    status = app.execute("select status from pgtrickle.stream_tables_info where pgt_name = 'checked'")
    assert status.fetchone() != ("SUSPENDED",)
    with sidecar_process(cluster.url, dsn, log, **DRIVER) as running:
        check_rows(app, running)
