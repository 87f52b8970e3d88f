"""`python -m bench.reach`: one changed row that reaches a thousand to ten million rows, in a small heap.

Each shape is followed once for each reach, in a process of its own Spark with the heap given. What is
written down is the time, the path, and the peak of the memory of Python and of the JVM.
"""

from __future__ import annotations

import os
import re
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final

import psycopg
import typer

import pgtrickle
from bench.stage import SETTINGS
from pgtrickle.embedded import Server, bundled_binaries
from pgtrickle.interfaces.python import Trickle
from pgtrickle.pipeline.session import open_spark

SHAPES: Final[Mapping[str, tuple[str, str]]] = {
    "join": (
        "select f.id, d.name from facts f join dims d on d.id = f.dim",
        "update dims set name = name || '!' where id = 0",
    ),
    "group": (
        "select d.name, count(*) as n, sum(f.amount) as total from facts f join dims d on d.id = f.dim"
        " group by d.name",
        "update dims set name = name || '!' where id = 0",
    ),
    "evaluated": (
        "select dim, percentile_cont(0.5) within group (order by amount) as middle from facts group by dim",
        "update facts set amount = amount + 1 where id = 1",
    ),
    "wide": (
        "select f.id, f.note, d.name from facts f join dims d on d.id = f.dim where f.id % 100 = 1",
        "update dims set name = name || '?' where id = 0",
    ),
    "layers": (
        "select b.id, b.amount, d.name from below b join dims d on d.id = b.dim",
        "update dims set name = name || '+' where id = 0",
    ),
}
"""A query and the change of one row that reaches nine tenths of the facts."""


@dataclass(slots=True)
class Peak:
    """The largest resident memory of this process and of its JVM while somebody watches, in megabytes."""

    python: float = 0.0
    jvm: float = 0.0
    _stop: threading.Event = field(default_factory=threading.Event)

    def watch(self) -> None:
        while not self._stop.wait(0.1):
            for pid in _descendants():
                name, resident = _resident(pid)
                if name == "java":
                    self.jvm = max(self.jvm, resident)
            self.python = max(self.python, _resident(os.getpid())[1])


@contextmanager
def peak() -> Iterator[Peak]:
    """Watch the memory while the body runs."""
    found = Peak()
    thread = threading.Thread(target=found.watch, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        found._stop.set()
        thread.join()


def _descendants() -> list[int]:
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            parents.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry.name))
    found, waiting = [], [os.getpid()]
    while waiting:
        children = parents.get(waiting.pop(), [])
        found += children
        waiting += children
    return found


def _resident(pid: int) -> tuple[str, float]:
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return "", 0.0
    name = re.search(r"^Name:\s+(\S+)", text, re.MULTILINE)
    size = re.search(r"^VmRSS:\s+(\d+)", text, re.MULTILINE)
    return name[1] if name else "", int(size[1]) / 1024 if size else 0.0


def fill(connection: psycopg.Connection[Any], facts: int) -> None:
    """Nine facts of ten belong to dimension 0."""
    connection.execute("create table dims (id int primary key, name text)")
    connection.execute("insert into dims select n, 'name ' || n from generate_series(0, 9) n")
    connection.execute("create table facts (id int primary key, dim int, amount int, note text)")
    connection.execute(
        "insert into facts select n, case when n % 10 = 9 then n % 9 + 1 else 0 end, n % 1000,"
        " case when n % 100 = 1 then repeat('wide ' || n, 400) end"
        f" from generate_series(1, {facts}) n"
    )
    connection.execute("create index on facts (dim)")
    connection.execute("vacuum analyze facts")


def main(
    reach: Annotated[list[int] | None, typer.Option(help="How many facts there are.")] = None,
    shape: Annotated[list[str] | None, typer.Option(help=f"Which of {', '.join(SHAPES)}.")] = None,
    heap: Annotated[str, typer.Option(help="The heap of Spark's driver.")] = "1g",
) -> None:
    """Follow each shape at each reach, and print what it took."""
    print(f"{'shape':10} {'facts':>12} {'seconds':>9} {'Python MB':>10} {'JVM MB':>8}  how", flush=True)
    for facts in reach or (1_000, 100_000, 1_000_000, 10_000_000):
        with tempfile.TemporaryDirectory(prefix="pgtrickle-reach-") as directory:
            Path(directory).chmod(0o755)
            with (
                Server(Path(directory) / "server", bundled_binaries(), SETTINGS) as server,
                open_spark(configuration={"spark.driver.memory": heap}) as spark,
                pgtrickle.connect(server.dsn(), spark.large) as trickle,
                psycopg.connect(server.dsn(), autocommit=True) as connection,
            ):
                trickle.install()
                fill(connection, facts)
                for name in shape or SHAPES:
                    _follow(trickle, connection, name, facts)


def _follow(trickle: Trickle, connection: psycopg.Connection[Any], name: str, facts: int) -> None:
    query, change = SHAPES[name]
    if name == "layers":
        trickle.create_stream_table("below", "select id, dim, amount from facts", None, "DIFFERENTIAL")
        trickle.refresh("below")
    trickle.create_stream_table(name, query, None, "DIFFERENTIAL")
    _measure(trickle, name, facts)
    connection.execute(change)
    _measure(trickle, name, facts)
    trickle.verify(name)
    trickle.drop_stream_table(name)


def _measure(trickle: Trickle, name: str, facts: int) -> None:
    with peak() as used:
        clock = time.perf_counter()
        outcome = trickle.refresh(name)
        took = time.perf_counter() - clock
    memory = f"{used.python:>10,.0f} {used.jvm:>8,.0f}"
    print(f"{name:10} {facts:>12,} {took:>9.1f} {memory}  {outcome.reason}", flush=True)


if __name__ == "__main__":
    typer.run(main)
