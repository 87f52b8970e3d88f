"""`python -m bench.first_hour`: how long a newcomer waits for the sidecar and for commands.

It starts its own PostgreSQL, and the commands as processes, as a shell does. Not part of `make bench`: it
measures wall-clock times of whole processes, so nothing else may run.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Annotated, Final

import psycopg
import typer

from bench.stage import SETTINGS
from pgtrickle.embedded import Server, bundled_binaries

COMMAND: Final = str(Path(sys.executable).parent / "pgtrickle")
READY: Final = "Ready after"
LONGEST_SECONDS: Final = 180.0
ARCHIVING_SECONDS: Final = 60.0
"""How long the first sidecar may take to archive the classes of Spark once it is ready."""
QUERY: Final = "select region, sum(amount) as total from orders group by region"


class Sidecar:
    """A `pgtrickle run` in a process, and when it was ready."""

    def __init__(self) -> None:
        self._ready = threading.Event()
        began = time.perf_counter()
        self._process = subprocess.Popen(
            [COMMAND, "run"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if not self._ready.wait(LONGEST_SECONDS):
            self.stop()
            raise TimeoutError(f"the sidecar was not ready after {LONGEST_SECONDS:g} s")
        self.seconds_to_ready = time.perf_counter() - began

    def stop(self) -> None:
        """End it as a service manager does."""
        self._process.terminate()
        self._process.wait(60)
        self._reader.join(5)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if READY in line:
                self._ready.set()


def first_hour(
    rounds: Annotated[int, typer.Option(min=1, help="How often each command is run.")] = 5,
) -> None:
    """Print the seconds until `run` is ready, and those of commands beside it."""
    with tempfile.TemporaryDirectory(prefix="pgtrickle-first-hour-") as directory:
        Path(directory).chmod(0o755)
        cache = Path(directory) / "cache"
        os.environ["PGTRICKLE_CACHE_DIR"] = str(cache)
        with Server(Path(directory) / "server", bundled_binaries(), SETTINGS) as server:
            os.environ["PGTRICKLE_DSN"] = server.dsn()
            _prepare(server.dsn())
            _say("run to ready, first start", [_started_once(cache)])
            _say("run to ready, later starts", [_started_once(None) for _ in range(2)])
            sidecar = Sidecar()
            try:
                _say("refresh, one row changed", [_refreshed(server.dsn(), n) for n in range(rounds)])
                for arguments in (["verify"], ["list"], ["status"], ["refresh", "--help"], ["--version"]):
                    _say(" ".join(arguments), [_timed(arguments) for _ in range(rounds)])
            finally:
                sidecar.stop()


def _prepare(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create table orders (id int primary key, region text, amount int)")
        connection.execute("insert into orders select i, 'r' || i % 5, i from generate_series(1, 1000) i")
    _timed(["install"])
    _timed(["create", "sales", "--schedule", "1s", "--query", QUERY])


def _started_once(cache: Path | None) -> float:
    """The seconds to ready; with a `cache`, wait until the classes are archived there too."""
    sidecar = Sidecar()
    deadline = time.monotonic() + ARCHIVING_SECONDS
    while cache is not None and not any(cache.rglob("spark-*.jsa")) and time.monotonic() < deadline:
        time.sleep(0.2)
    sidecar.stop()
    return sidecar.seconds_to_ready


def _refreshed(dsn: str, number: int) -> float:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("update orders set amount = amount + 1 where id = %s", (number + 1,))
    return _timed(["refresh", "sales"])


def _timed(arguments: Sequence[str]) -> float:
    began = time.perf_counter()
    subprocess.run([COMMAND, *arguments], check=True, capture_output=True)
    return time.perf_counter() - began


def _say(what: str, seconds: Sequence[float]) -> None:
    shown = ", ".join(f"{value:.2f}" for value in seconds)
    print(f"{what:28} {median(seconds):6.2f} s   ({shown})", flush=True)


if __name__ == "__main__":
    typer.run(first_hour)
