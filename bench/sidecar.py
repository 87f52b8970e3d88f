"""A sidecar in a process of its own, with its own Spark, beside what is measured."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psutil  # type: ignore[import-untyped]

from bench.stage import Place
from pgtrickle.model.settings import CACHE_DIR, DSN
from tests.fixtures.waiting import eventually

READY_SECONDS: Final = 400.0
_READY: Final = (
    "select exists (select from pgtrickle.server_worker_inventory"
    " where is_alive and vitals ->> 'in_place' is not null and vitals ->> 'waits_for_spark' is null)"
)


@contextmanager
def sidecar(place: Place, *options: str) -> Iterator[psutil.Process]:
    """`pgtrickle run` with these options, once it can compute."""
    command = [sys.executable, "-m", "pgtrickle.interfaces.cli", "run"]
    heap = ["--spark-conf", "spark.driver.memory=1g"]
    # without files, because the first start on a host writes an archive of classes for minutes
    environment = {**os.environ, DSN.variable: place.dsn, CACHE_DIR.variable: "off"}
    with subprocess.Popen(
        [*command, *heap, *options], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        found = psutil.Process(process.pid)
        try:
            eventually(lambda: place.connection.execute(_READY).fetchone() == (True,), seconds=READY_SECONDS)
            yield found
        finally:
            let(found, runs=True)
            process.send_signal(signal.SIGTERM)


def let(process: psutil.Process, *, runs: bool) -> None:
    """Freeze the sidecar and its JVM, or let them go on: faster than a start, and as quiet as a stop."""
    for one in (process, *process.children(recursive=True)):
        (one.resume if runs else one.suspend)()
    # what waited for its turn meanwhile is done first
    threading.Event().wait(1.0)


def memory(process: psutil.Process) -> tuple[float, float]:
    """The resident megabytes of Python, and of its JVM."""
    python = process.memory_info().rss / 2**20
    jvm = sum(child.memory_info().rss for child in process.children() if "java" in child.name())
    return python, jvm / 2**20
