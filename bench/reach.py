"""`python -m bench.reach`: changes of few rows that reach many, in a small heap.

`shapes` follows one changed row that reaches nine tenths of a thousand to ten million rows. `tpch` follows
the harsh changes of TPC-H, with renamed nations and changed keys, by all 22 queries. What is printed is the
time, the peak of the memory of Python and of the JVM, and what the history says.
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
from typing import Annotated, Any, Final, cast

import psycopg
import typer

import pgtrickle
from bench.stage import SETTINGS
from pgtrickle.catalog.tables import find
from pgtrickle.embedded import Server, bundled_binaries
from pgtrickle.interfaces.python import Trickle
from pgtrickle.pipeline.session import open_spark
from pgtrickle.plan.explain import missing_indexes
from pgtrickle.plan.programs import programs_for_all
from pgtrickle.refresh.prepare import prepare
from tests.tpch.answers import assert_answers
from tests.tpch.drawing import NEW_KEYS
from tests.tpch.harsh import harsh
from tests.tpch.loading import TABLES, create_tables, fill_tables
from tests.tpch.published import NAMES, query

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


@contextmanager
def place(heap: str) -> Iterator[tuple[Trickle, psycopg.Connection[Any]]]:
    """A server and a Spark with that heap."""
    with tempfile.TemporaryDirectory(prefix="pgtrickle-reach-") as directory:
        Path(directory).chmod(0o755)
        with (
            Server(Path(directory) / "server", bundled_binaries(), SETTINGS) as server,
            open_spark(configuration={"spark.driver.memory": heap}) as spark,
            pgtrickle.connect(server.dsn(), spark.large) as trickle,
            psycopg.connect(server.dsn(), autocommit=True) as connection,
        ):
            trickle.install()
            yield trickle, connection


Heap = Annotated[str, typer.Option(help="The heap of Spark's driver.")]
app = typer.Typer()


@app.command()
def shapes(
    reach: Annotated[list[int] | None, typer.Option(help="How many facts there are.")] = None,
    shape: Annotated[list[str] | None, typer.Option(help=f"Which of {', '.join(SHAPES)}.")] = None,
    heap: Heap = "1g",
) -> None:
    """Follow each shape at each reach."""
    _say("what", "rows", "seconds", "Python MB", "JVM MB", "how")
    for facts in reach or (1_000, 100_000, 1_000_000, 10_000_000):
        with place(heap) as (trickle, connection):
            fill(connection, facts)
            for name in shape or SHAPES:
                _follow(trickle, connection, name, facts)


@app.command()
def tpch(
    scale: Annotated[float, typer.Option(help="1 is six million lineitems.")] = 0.1,
    cycles: Annotated[int, typer.Option(help="How many windows are followed.")] = 1,
    rows: Annotated[int, typer.Option(help="About how many rows a statement changes.")] = 20,
    heap: Heap = "2g",
) -> None:
    """Follow the harsh changes by all 22 queries, and compare each with PostgreSQL's own answer."""
    _say("what", "rows", "seconds", "Python MB", "JVM MB", "how")
    queries = [query(name, scale) for name in NAMES]
    with place(heap) as (trickle, connection):
        create_tables(connection)
        fill_tables(connection, scale)
        connection.execute("vacuum analyze")
        for asked in queries:
            trickle.create_stream_table(asked.name, asked.text, None)
        _create_indexes(trickle, connection)
        for asked in queries:
            _measure(trickle, asked.name, 0)
        for cycle in range(cycles):
            before = _written(connection)
            for transaction in harsh(cycle, rows, max(NEW_KEYS, round(8_000_000 * scale))):
                with connection.transaction():
                    for statement in transaction:
                        connection.execute(cast(Any, statement))
            changed = _written(connection) - before
            for asked in queries:
                _measure(trickle, asked.name, changed)
            for asked in queries:
                assert_answers(connection, asked.name, asked)
            print(f"all {len(queries)} are exact after {changed:,} changed rows", flush=True)


def _create_indexes(trickle: Trickle, connection: psycopg.Connection[Any]) -> None:
    """What `explain` asks for."""
    engine = trickle.engine
    wanted: dict[str, None] = {}
    for standing in trickle.list():
        with engine.connection() as catalog:
            table = find(catalog, str(standing.name))
        found = prepare(engine, table.id).compilation
        if found.compiled:
            wanted |= dict.fromkeys(missing_indexes(*programs_for_all(found.compiled)))
        engine.forget(table.id)
    for index in wanted:
        connection.execute(cast(Any, index))
    connection.execute("vacuum analyze")


def _written(connection: psycopg.Connection[Any]) -> int:
    connection.execute("select pg_stat_force_next_flush()")
    row = connection.execute(
        "select sum(n_tup_ins + n_tup_upd + n_tup_del)::bigint from pg_stat_user_tables"
        " where relname = any (%s)",
        (list(TABLES),),
    ).fetchone()
    assert row is not None
    return int(row[0])


def _say(*cells: str) -> None:
    what, rows, seconds, python, jvm, how = cells
    print(f"{what:10} {rows:>12} {seconds:>9} {python:>10} {jvm:>8}  {how}", flush=True)


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
    _say(name, f"{facts:,}", f"{took:.1f}", f"{used.python:,.0f}", f"{used.jvm:,.0f}", outcome.reason)


if __name__ == "__main__":
    app()
