"""What capture from the log costs writers, how fast it decodes, and how soon it shows changes.

`python -m bench.wal` measures only this, and without Spark what needs none.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
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
from bench.stage import SETTINGS, Stage
from bench.timing import milliseconds
from pgtrickle.capture.wal.capture import WalCapture
from pgtrickle.capture.wal.hand_over import hand_over_sources
from pgtrickle.catalog.install import install
from pgtrickle.embedded import Server, bundled_binaries
from pgtrickle.pipeline.session import Spark, open_spark
from pgtrickle.refresh.engine import Engine
from pgtrickle.scheduler.service.loop import Loop
from pgtrickle.scheduler.service.wal_watch import DECODE_SECONDS, STOP_SECONDS, yield_to_others

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


def capture(dsn: str, *, streams: bool = True) -> WalCapture:
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
    wal = WalCapture(dsn, streams=streams)
    with wal.using() as connection:
        assert not any(found.obstacle for found in hand_over_sources(connection))
    return wal


@contextmanager
def decoding(wal: WalCapture) -> Iterator[None]:
    """Decode beside what is measured, as a sidecar does."""
    stop = threading.Event()

    def serve() -> None:
        rest = 0.0
        yield_to_others()
        while not stop.wait(max(rest, DECODE_SECONDS)):
            _, rest = wal.follow(STOP_SECONDS)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def levels(seconds: int, rounds: int) -> list[Figure]:
    """What the log itself costs, without any capture: two servers in turns."""
    samples: dict[str, list[float]] = {"replica": [], "logical": []}
    with serving(wal_level="replica") as replica, serving(wal_level="logical") as logical:
        places = {"replica": replica, "logical": logical}
        script = SCRIPT.format(customers=CUSTOMERS, orders=PLAIN)
        for number in range(1 + rounds):
            for level in samples if number % 2 else reversed(samples):
                ran = pgbench(places[level], [script], seconds)
                if number:
                    samples[level].append(ran.per_second)
    what = "single-row inserts per second, wal_level logical ÷ replica, no capture"
    return [ratio(what, "logical", "replica", samples, None, unit="/s")]


def inserts(dsn: str, wal: WalCapture, seconds: int, rounds: int) -> list[Figure]:
    """Single rows as fast as possible, and at half of that."""
    fast: dict[str, list[float]] = {PLAIN: [], PAUSED: [], DECODING: [], TRIGGER: []}
    paced: dict[str, list[float]] = {PLAIN: [], PAUSED: [], DECODING: []}

    def run(kind: str, pace: int | None = None) -> tuple[float, float]:
        table = {PAUSED: "logged", DECODING: "logged"}.get(kind, kind)
        script = SCRIPT.format(customers=CUSTOMERS, orders=table)
        wal.catch_up()
        if kind == DECODING:
            with decoding(wal):
                ran = pgbench(dsn, [script], seconds, per_second=pace)
        else:
            # nobody reads the slot
            wal.close()
            ran = pgbench(dsn, [script], seconds, per_second=pace)
        return ran.per_second, ran.milliseconds

    for number in range(1 + rounds):
        for kind in fast if number % 2 else reversed(fast):
            found = run(kind)[0]
            if number:
                fast[kind].append(found)
    pace = round(median(fast[PLAIN]) / 2)
    for number in range(rounds):
        for kind in paced if number % 2 else reversed(paced):
            paced[kind].append(run(kind, pace)[1])
    what = f"single-row inserts per second, {CLIENTS} clients"
    slow = f"latency at half of that rate ({pace}/s)"
    return [
        ratio(
            f"{what}, slot present, decoding paused ÷ none", PAUSED, PLAIN, fast, at_least(0.97), unit="/s"
        ),
        ratio(f"{what}, while decoding ÷ none", DECODING, PLAIN, fast, None, unit="/s"),
        ratio(f"{what}, triggers ÷ none", TRIGGER, PLAIN, fast, None, unit="/s"),
        ratio(f"{slow}, decoding paused ÷ none", PAUSED, PLAIN, paced, None, unit="ms"),
        ratio(f"{slow}, wal ÷ none", DECODING, PLAIN, paced, at_most(1.05), unit="ms"),
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
    wal.close()
    ran = pgbench(dsn, [SCRIPT.format(customers=CUSTOMERS, orders="logged")], 4)
    small = milliseconds(wal.catch_up)
    before = _peak_megabytes()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "insert into logged (customer, amount)"
            f" select 1 + n %% {CUSTOMERS}, n from generate_series(1, %s) n",
            (large,),
        )
    took = milliseconds(wal.catch_up)
    idle = median(milliseconds(partial(wal.follow, 0)) for _ in range(100))
    return [
        Figure("decoding small transactions, rows/s", 4000 * ran.per_second / small, unit="/s"),
        Figure(f"decoding a transaction of {large:,} rows, rows/s", 1000 * large / took, unit="/s"),
        Figure("memory that this took at its peak", _peak_megabytes() - before, unit="MB"),
        Figure("look at the log, nothing to decode", idle, unit="ms", bar=at_most(5)),
    ]


def _peak_megabytes() -> float:
    return getrusage(RUSAGE_SELF).ru_maxrss / 1024


def freshness(dsn: str, spark: Spark, rounds: int) -> list[Figure]:
    """From the commit of a write until the stream table shows it."""
    samples: dict[str, list[float]] = {"logged": [], TRIGGER: []}
    stop = threading.Event()
    with psycopg.connect(dsn, autocommit=True) as connection:
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
        # the caller started Spark and stops it
        engine._spark = None
        engine.close()
    what = "commit of a write → visible in the stream table, wal ÷ trigger"
    return [ratio(what, "logged", TRIGGER, samples, at_most(1.3), unit="ms")]


def _orders(connection: psycopg.Connection, name: str, number: int) -> None:
    time.sleep(0.3)
    connection.execute(f"insert into {name} (customer, amount) values (%s, 1)", (1 + number,))


def _wait_for(connection: psycopg.Connection, name: str) -> None:
    asked = f"select (select sum(orders) from by_{name}) = (select count(*) from {name})"
    while connection.execute(asked).fetchone() != (True,):
        time.sleep(0.001)


def without_spark(seconds: int, rounds: int, large: int) -> list[Figure]:
    """What writers pay, and how fast the log is decoded."""
    figures = levels(seconds, rounds)
    with serving(wal_level="logical") as dsn:
        log = capture(dsn)
        figures += [*inserts(dsn, log, seconds, rounds), *bulk(dsn, rounds), *throughput(dsn, log, large)]
        log.close()
    return figures


def with_spark(spark: Spark, rounds: int) -> list[Figure]:
    """How soon changes are shown."""
    with serving(wal_level="logical") as dsn:
        capture(dsn).close()
        return freshness(dsn, spark, rounds)


def wal(stage: Stage) -> list[Figure]:
    """On servers of its own, because `wal_level` is set at the start."""
    sizes = stage.sizes
    return [
        *without_spark(sizes.seconds, sizes.long_rounds, sizes.orders),
        *with_spark(stage.spark, sizes.long_rounds),
    ]


def main(
    seconds: Annotated[int, typer.Option(help="How long each run of pgbench takes.")] = 4,
    rounds: Annotated[int, typer.Option(help="How often each is repeated.")] = 3,
    large: Annotated[int, typer.Option(help="The rows of the large transaction.")] = LARGE,
    only: Annotated[str, typer.Option(help="costs, freshness, or both.")] = "both",
) -> None:
    """Measure capture from the log."""
    figures: list[Figure] = []
    if only != "freshness":
        figures += without_spark(seconds, rounds, large)
    if only != "costs":
        with open_spark() as spark:
            spark.warm()
            figures += with_spark(spark, rounds)
    Console(width=180).print(table_of(figures, "capture from the log"))


if __name__ == "__main__":
    typer.run(main)
