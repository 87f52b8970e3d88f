"""What an application that only reads notices of a sidecar beside it, and what a proxy would cost it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from statistics import median
from typing import Final
from urllib.request import urlopen

import psutil  # type: ignore[import-untyped]

from bench.crowd import crowd
from bench.figures import Figure, at_least, ratio
from bench.pgbench import CLIENTS, Ran, pgbench
from bench.sidecar import READY_SECONDS, let, sidecar
from bench.stage import Place, Stage
from pgtrickle.embedded import SUPERUSER
from pgtrickle.embedded.host import free_port
from tests.fixtures.poolers import new_pooler, program
from tests.fixtures.waiting import eventually

BESIDE, ALONE, PROXIED = "sidecar beside", "alone", "through PgBouncer"
TABLES: Final = 100
SECONDS: Final = 3
"""A sidecar that is frozen for longer than ten seconds starts over, which is no idling."""
PACE: Final = 200
"""Transactions per second of an application that has time to spare."""
SCRAPE_SECONDS: Final = 5.0
"""How often the metrics are read: three times as often as Prometheus does unless told otherwise."""
LEAST: Final = 0.97
DATABASE: Final = "neighbour"
_LOOK_SECONDS: Final = 5.0
_PATIENCE_SECONDS: Final = 20.0
_IDLE_SHARE: Final = 0.06
"""How much of a core an idle sidecar takes at most. Before that, its JVM still compiles."""
_SCRIPT: Final = """\\set id random(1, {rows})
select balance from accounts where id = :id;
"""


def neighbour(stage: Stage) -> list[Figure]:
    """Select-only pgbench with a sidecar process beside it, with the same process frozen, and by a proxy."""
    rates: dict[str, list[float]] = {BESIDE: [], ALONE: []}
    waits: dict[str, list[float]] = {BESIDE: [], ALONE: []}
    proxied: dict[str, list[float]] = {PROXIED: [], ALONE: []}
    slower: dict[str, list[float]] = {PROXIED: [], ALONE: []}
    rows, rounds = stage.sizes.orders, max(2, stage.sizes.rounds // 2)
    with stage.database(DATABASE) as place:
        crowd(place, TABLES)
        _make_accounts(place, rows)
        place.trickle.create_stream_table("richest", "select id, balance from accounts where balance > 990")
        place.trickle.refresh("richest")
        place.settle()
        script = _SCRIPT.format(rows=rows)
        with _sidecar(place) as beside:
            idle = [_share_of_a_core(place, beside) for _ in range(rounds)]
            for number in range(1 + rounds):
                for way in (BESIDE, ALONE) if number % 2 else (ALONE, BESIDE):
                    let(beside, runs=way == BESIDE)
                    fast, paced = _run(place.dsn, script)
                    if number:
                        rates[way].append(fast.per_second)
                        waits[way].append(paced.milliseconds)
            let(beside, runs=True)
        if program() is not None:
            with new_pooler(stage.server, (SUPERUSER,), size=CLIENTS) as pooler:
                addresses = {PROXIED: pooler.dsn(DATABASE, SUPERUSER), ALONE: place.dsn}
                for number in range(1 + rounds):
                    for way in addresses if number % 2 else reversed(addresses):
                        fast, paced = _run(addresses[way], script)
                        if number:
                            proxied[way].append(fast.per_second)
                            slower[way].append(paced.milliseconds)
    with_it = f"with an idle sidecar of {TABLES} stream tables, its page and metrics beside ÷ without"
    figures = [
        Figure(
            f"share of a core that an idle sidecar of {TABLES} stream tables takes",
            median(idle),
            unit="cores",
            samples={"share": idle},
        ),
        ratio(
            f"reads per second, {CLIENTS} clients, {with_it}",
            BESIDE,
            ALONE,
            rates,
            at_least(LEAST),
            unit="/s",
        ),
        ratio(f"latency of {PACE} reads per second, {with_it}", BESIDE, ALONE, waits, None, unit="ms"),
    ]
    if proxied[PROXIED]:
        through = "through PgBouncer ÷ direct"
        figures += [
            ratio(
                f"reads per second, {CLIENTS} clients, {through}", PROXIED, ALONE, proxied, None, unit="/s"
            ),
            ratio(f"latency of {PACE} reads per second, {through}", PROXIED, ALONE, slower, None, unit="ms"),
        ]
    return figures


def _run(dsn: str, script: str) -> tuple[Ran, Ran]:
    """As fast as it goes, then at a pace."""
    return pgbench(dsn, [script], SECONDS), pgbench(dsn, [script], SECONDS, per_second=PACE)


def _make_accounts(place: Place, rows: int) -> None:
    place.connection.execute(
        "create table accounts (id integer primary key, balance integer, filler char(84))"
    )
    place.connection.execute(f"insert into accounts select n, n % 1000, '' from generate_series(1, {rows}) n")


@contextmanager
def _sidecar(place: Place) -> Iterator[psutil.Process]:
    """A sidecar in a process of its own, with its own Spark, once it has computed something."""
    port = free_port()
    with sidecar(place, "--http", f"127.0.0.1:{port}") as found, _watched(port):
        eventually(lambda: _is_at_rest(place, found), seconds=READY_SECONDS)
        yield found


@contextmanager
def _watched(port: int) -> Iterator[None]:
    """Somebody has the page open, and a monitoring system reads the metrics, as on any ordinary day."""
    done = threading.Event()

    def follow(path: str, pause: float) -> None:
        while not done.wait(pause):
            # a frozen sidecar does not answer
            with (
                suppress(OSError),
                urlopen(f"http://127.0.0.1:{port}{path}", timeout=_PATIENCE_SECONDS) as answer,
            ):
                for _ in answer:
                    if done.is_set():
                        return

    readers = [
        threading.Thread(target=follow, args=("/metrics", SCRAPE_SECONDS), name="scraper", daemon=True),
        threading.Thread(target=follow, args=("/api/v1/events", 1.0), name="page", daemon=True),
    ]
    for reader in readers:
        reader.start()
    try:
        yield
    finally:
        done.set()


def _is_at_rest(place: Place, beside: psutil.Process) -> bool:
    """Whether it takes little again and again: on a busy machine, one look may catch it waiting."""
    return all(_share_of_a_core(place, beside) < _IDLE_SHARE for _ in range(3))


def _share_of_a_core(place: Place, beside: psutil.Process) -> float:
    """The time on a core that the sidecar took lately, per second: Python, its JVM, its server processes.

    Whatever else the machine does, this is what the sidecar takes from others.
    """
    before = _core_seconds(place, beside)
    threading.Event().wait(_LOOK_SECONDS)
    return (_core_seconds(place, beside) - before) / _LOOK_SECONDS


def _core_seconds(place: Place, beside: psutil.Process) -> float:
    serving = place.connection.execute(
        "select pid from pg_stat_activity where datname = current_database()"
        " and application_name like 'pgtrickle%' and pid <> pg_backend_pid()"
    ).fetchall()
    processes = (beside, *beside.children(recursive=True), *(psutil.Process(pid) for (pid,) in serving))
    times = [process.cpu_times() for process in processes]
    return float(sum(time.user + time.system for time in times))
