"""`python -m bench.wal`: what capture from the log costs writers, how fast it decodes, how soon it shows."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Annotated, Final

import psycopg
import typer
from rich.console import Console

from bench.bulk_insert import insert
from bench.figures import Figure, at_least, at_most, ratio
from bench.pgbench import CLIENTS, pgbench
from bench.report import table_of
from bench.shop import CUSTOMERS, make_customers, make_orders, query
from bench.single_inserts import SCRIPT
from bench.stage import SETTINGS
from bench.timing import milliseconds
from pgtrickle.capture.wal.capture import WalCapture
from pgtrickle.capture.wal.hand_over import hand_over_sources
from pgtrickle.catalog.install import install
from pgtrickle.embedded import Server, bundled_binaries
from pgtrickle.pipeline.session import open_spark
from pgtrickle.refresh.engine import Engine
from pgtrickle.scheduler.service.loop import Loop

PLAIN, PAUSED, DECODING, TRIGGER = "plain", "paused", "decoding", "trigger"
LARGE: Final = 1_000_000
DATABASE: Final = "wal"
WARMING: Final = 3


@contextmanager
def serving(**settings: str) -> Iterator[str]:
    """A server with the orders of the shop: without capture, from the log, and by triggers."""
    with tempfile.TemporaryDirectory(prefix="pgtrickle-bench-") as directory:
        path = Path(directory)
        path.chmod(0o755)
        with Server(path / "server", bundled_binaries(), {**SETTINGS, **settings}) as server:
            with psycopg.connect(server.dsn(), autocommit=True) as admin:
                admin.execute(f"create database {DATABASE}")
            dsn = server.dsn(DATABASE)
            with psycopg.connect(dsn) as connection:
                install(connection)
            with psycopg.connect(dsn, autocommit=True) as connection:
                make_customers(connection)
                for name in (PLAIN, "logged", TRIGGER):
                    make_orders(connection, name, 2_000)
            yield dsn


def capture(dsn: str) -> WalCapture:
    """Let stream tables read two of the tables, and hand one of them over to the log."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "alter table logged replica identity full; alter table customers replica identity full"
        )
        for name, mode in (("logged", "wal"), (TRIGGER, "trigger")):
            connection.execute(
                "select pgtrickle.create_stream_table(%s, %s, schedule => 'calculated', cdc_mode => %s)",
                (f"by_{name}", query(name), mode),
            )
        connection.execute("vacuum analyze")
    wal = WalCapture(dsn)
    with wal.using() as connection:
        assert not any(found.obstacle for found in hand_over_sources(connection))
    return wal


@contextmanager
def decoding(wal: WalCapture) -> Iterator[None]:
    """Decode beside what is measured, as a sidecar does."""
    stop = threading.Event()

    def serve() -> None:
        while not stop.wait(0.02):
            wal.decode()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def inserts(dsn: str, wal: WalCapture, seconds: int, rounds: int) -> list[Figure]:
    """Single rows as fast as possible, and at half of that."""
    fast: dict[str, list[float]] = {PLAIN: [], PAUSED: [], DECODING: [], TRIGGER: []}
    paced: dict[str, list[float]] = {PLAIN: [], PAUSED: [], DECODING: []}

    def run(kind: str, pace: int | None = None) -> tuple[float, float]:
        table = {PAUSED: "logged", DECODING: "logged"}.get(kind, kind)
        script = SCRIPT.format(customers=CUSTOMERS, orders=table)
        if kind != DECODING:
            ran = pgbench(dsn, [script], seconds, per_second=pace)
        else:
            with decoding(wal):
                ran = pgbench(dsn, [script], seconds, per_second=pace)
        wal.catch_up()
        return ran.per_second, ran.milliseconds

    for number in range(1 + rounds):
        for kind, samples in fast.items():
            found = run(kind)[0]
            if number:
                samples.append(found)
    pace = round(median(fast[PLAIN]) / 2)
    for _ in range(rounds):
        for kind, samples in paced.items():
            samples.append(run(kind, pace)[1])
    what = f"single-row inserts per second, {CLIENTS} clients"
    return [
        ratio(
            f"{what}, slot present, decoding paused ÷ none", PAUSED, PLAIN, fast, at_least(0.97), unit="/s"
        ),
        ratio(f"{what}, while decoding ÷ none", DECODING, PLAIN, fast, None, unit="/s"),
        ratio(f"{what}, triggers ÷ none", TRIGGER, PLAIN, fast, None, unit="/s"),
        ratio("latency at half of that rate, paused ÷ none", PAUSED, PLAIN, paced, at_most(1.05), unit="ms"),
        ratio("latency at half of that rate, decoding ÷ none", DECODING, PLAIN, paced, None, unit="ms"),
    ]


def bulk(dsn: str, rounds: int) -> list[Figure]:
    """One statement with 10,000 rows."""
    samples: dict[str, list[float]] = {PLAIN: [], "logged": []}
    with psycopg.connect(dsn, autocommit=True) as connection:
        for number in range(WARMING + 3 * rounds):
            for name in samples if number % 2 else reversed(samples):
                took = milliseconds(partial(connection.execute, insert(name, 10_000)))
                if number >= WARMING:
                    samples[name].append(took)
    return [
        ratio("bulk insert of 10,000 rows, wal ÷ none", "logged", PLAIN, samples, at_most(1.05), unit="ms")
    ]


def throughput(dsn: str, wal: WalCapture, large: int) -> list[Figure]:
    """Decoded rows per second, for many small transactions and one large one, and the cost of an idle log."""
    wal.catch_up()
    ran = pgbench(dsn, [SCRIPT.format(customers=CUSTOMERS, orders="logged")], 4)
    small = milliseconds(wal.catch_up)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "insert into logged (customer, amount)"
            f" select 1 + n %% {CUSTOMERS}, n from generate_series(1, %s) n",
            (large,),
        )
    took = milliseconds(wal.catch_up)
    idle = median(milliseconds(wal.decode) for _ in range(100))
    return [
        Figure("decoding small transactions, rows/s", 4000 * ran.per_second / small),
        Figure(f"decoding a transaction of {large:,} rows, rows/s", 1000 * large / took),
        Figure("look at the log, nothing to decode, ms", idle, bar=at_most(5)),
    ]


def freshness(dsn: str, rounds: int) -> list[Figure]:
    """From the commit of a write until the stream table shows it."""
    samples: dict[str, list[float]] = {"logged": [], TRIGGER: []}
    stop = threading.Event()
    with open_spark() as spark, psycopg.connect(dsn, autocommit=True) as connection:
        spark.warm()
        engine = Engine(dsn, lambda: spark)
        serving_thread = threading.Thread(target=Loop(engine, lambda event: None).serve, args=(stop,))
        serving_thread.start()
        for number in range(5 + 10 * rounds):
            for name, found in samples.items():
                _orders(connection, name, number)
                shown = milliseconds(partial(_wait_for, connection, name))
                if number >= 5:
                    found.append(shown)
        stop.set()
        serving_thread.join()
        engine.wal.close()
    what = "commit of a write → visible in the stream table, wal ÷ trigger"
    return [ratio(what, "logged", TRIGGER, samples, at_most(1.3), unit="ms")]


def _orders(connection: psycopg.Connection, name: str, number: int) -> None:
    time.sleep(0.3)
    connection.execute(f"insert into {name} (customer, amount) values (%s, 1)", (1 + number,))


def _wait_for(connection: psycopg.Connection, name: str) -> None:
    asked = f"select (select sum(orders) from by_{name}) = (select count(*) from {name})"
    while connection.execute(asked).fetchone() != (True,):
        time.sleep(0.001)


def main(
    seconds: Annotated[int, typer.Option(help="How long each run of pgbench takes.")] = 4,
    rounds: Annotated[int, typer.Option(help="How often each is repeated.")] = 3,
    large: Annotated[int, typer.Option(help="The rows of the large transaction.")] = LARGE,
    shown: Annotated[bool, typer.Option(help="Measure how soon changes are shown.")] = True,
) -> None:
    """Measure capture from the log."""
    figures: list[Figure] = []
    levels: dict[str, list[float]] = {}
    for level in ("replica", "logical"):
        with serving(wal_level=level) as dsn:
            script = SCRIPT.format(customers=CUSTOMERS, orders=PLAIN)
            levels[level] = [pgbench(dsn, [script], seconds).per_second for _ in range(1 + rounds)][1:]
    what = "single-row inserts per second, wal_level logical ÷ replica, no capture"
    figures.append(ratio(what, "logical", "replica", levels, None, unit="/s"))
    with serving(wal_level="logical") as dsn:
        wal = capture(dsn)
        figures += [*inserts(dsn, wal, seconds, rounds), *bulk(dsn, rounds), *throughput(dsn, wal, large)]
        wal.close()
    if shown:
        with serving(wal_level="logical") as dsn:
            capture(dsn).close()
            figures += freshness(dsn, rounds)
    Console(width=180).print(table_of(figures, "capture from the log"))


if __name__ == "__main__":
    typer.run(main)
