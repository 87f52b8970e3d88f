"""A process on a cluster whose executors are killed while they compute, alone and below a sidecar.

Run as: python -m tests.pipeline.dying_executors, with the addresses in PGTRICKLE_DSN and PGTRICKLE_APP_DSN.
The stream table `checked` reads `orders` through a function that waits while the application holds a lock, so
that tasks can be met at work. It prints what it saw as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path as FilePath
from typing import Any

import psycopg

from pgtrickle.commands.refresh import refresh
from pgtrickle.commands.status import history, table_status
from pgtrickle.commands.verify import verify
from pgtrickle.model.errors import SparkLost
from pgtrickle.model.settings import SparkPath
from pgtrickle.pipeline.session import Spark, open_spark
from pgtrickle.refresh.engine import Engine
from tests.fixtures.poolers import POOL_SIZE
from tests.fixtures.sidecars import running
from tests.fixtures.waiting import eventually

MASTER = "local-cluster[1,1,768]"
MAX_FAILURES = 2
"""How often a task may fail before Spark gives up its job: an executor takes its time to start."""
CONFIGURATION = {
    "spark.executor.memory": "768m",
    "spark.driver.memory": "1g",
    "spark.task.maxFailures": str(MAX_FAILURES),
}
SECONDS = 240.0


def executors(engine: Engine) -> list[int]:
    """The executors of the cluster: its workers live in the driver's JVM."""
    process = engine.spark._process
    assert process is not None
    found = FilePath(f"/proc/{process.pid}/task").glob("*/children")
    children = [int(child) for file in found for child in file.read_text().split()]
    return [child for child in children if "CoarseGrainedExecutorBackend" in _command(child)]


def _command(process: int) -> str:
    try:
        return FilePath(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


@contextmanager
def tasks_waiting(dsn: str) -> Iterator[psycopg.Connection]:
    """Let every task that reads orders wait until the block ends."""
    with psycopg.connect(dsn, autocommit=True) as holder:
        holder.execute("select pg_advisory_lock(42)")
        yield holder


def waiting_tasks(connection: psycopg.Connection) -> set[int]:
    """The connections of tasks that wait."""
    found = connection.execute("select pid from pg_locks where locktype = 'advisory' and not granted")
    return {pid for (pid,) in found}


def kill_at_work(engine: Engine, holder: psycopg.Connection, known: set[int]) -> set[int]:
    """Kill every executor once a task that is not known yet waits; the tasks that waited then."""
    eventually(lambda: bool(waiting_tasks(holder) - known), seconds=SECONDS)
    met = waiting_tasks(holder)
    killed = executors(engine)
    for executor in killed:
        os.kill(executor, signal.SIGKILL)
    eventually(lambda: not any(map(_command, killed)), seconds=SECONDS)
    return met | known


def note_losses() -> list[str]:
    """The jobs that are given up from now on because a process has ended, each with what is said of it."""
    lost: list[str] = []
    check = Spark.check

    def noting(self: Spark, failure: Exception) -> None:
        try:
            check(self, failure)
        except SparkLost as loss:
            lost.append(loss.message)
            raise

    Spark.check = noting  # type: ignore[method-assign]
    return lost


def during_a_refresh(engine: Engine, app: psycopg.Connection, dsn: str) -> dict[str, Any]:
    """Spark repeats what the executors were doing."""
    outcomes = []
    app.execute("update orders set amount = amount + 1 where mod(id, 3) = 0")
    with tasks_waiting(dsn) as holder:
        thread = threading.Thread(target=lambda: outcomes.append(refresh(engine, "checked")))
        thread.start()
        met = kill_at_work(engine, holder, set())
    thread.join(SECONDS)
    verify(engine, "checked")
    return {"action": outcomes[0].action.value, "met": len(met)}


def below_a_sidecar(engine: Engine, app: psycopg.Connection, dsn: str) -> dict[str, Any]:
    """Spark gives the job up, since its executors die whenever they work on it; the sidecar tries again."""
    lost = note_losses()
    with running(engine) as sidecar:
        with tasks_waiting(dsn) as holder:
            app.execute("delete from orders where mod(id, 5) = 0")
            met: set[int] = set()
            for _ in range(MAX_FAILURES):
                met = kill_at_work(engine, holder, met)
            eventually(lambda: bool(lost), seconds=SECONDS)
            # the next job
            eventually(lambda: bool(waiting_tasks(holder) - met), seconds=SECONDS)
            during = table_status(engine.dsn, "checked")
        eventually(lambda: sidecar.has_refreshed("checked"), seconds=SECONDS)
        errors = sorted({getattr(error, "code", str(error)) for error in sidecar.errors()})
    verify(engine, "checked")
    return {
        "lost": lost,
        "errors": errors,
        "status": during.status.value,
        "consecutive": during.consecutive_errors,
    }


def main() -> None:
    engine = Engine(
        os.environ["PGTRICKLE_DSN"],
        lambda: open_spark(MASTER, configuration=CONFIGURATION),
        SparkPath.DISTRIBUTED,
        max_connections=POOL_SIZE,
    )
    dsn = os.environ["PGTRICKLE_APP_DSN"]
    with psycopg.connect(dsn, autocommit=True) as app:
        refresh(engine, "checked")
        found = {
            "refresh": during_a_refresh(engine, app, dsn),
            "sidecar": below_a_sidecar(engine, app, dsn),
        }
    status_after = table_status(engine.dsn, "checked")
    found["after"] = {
        "status": status_after.status.value,
        "errors": status_after.consecutive_errors,
        "failed": [past.error for past in history(engine.dsn, "checked", 100) if past.status != "COMPLETED"],
        "deaths": engine.supply.deaths,
    }
    engine.close()
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
