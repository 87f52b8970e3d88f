"""What an application notices of stream tables that follow its tables."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from statistics import median

from bench.crowd import create
from bench.figures import Figure, at_least, at_most, ratio
from bench.freshness import Change, refreshes, waits
from bench.layers import ROWS, levels, make_sources
from bench.pgbench import CLIENTS, pgbench
from bench.serving import wait_until_followed, wait_until_loaded
from bench.sidecar import let, sidecar
from bench.stage import Place, Stage
from bench.timing import percentile

SOURCES = 10
FOLLOWED, PLAIN = "followed", "without pgtrickle"
PACE = 100
"""Transactions per second of an application that has time to spare."""
WARMING_SECONDS = 3
STEP = timedelta(milliseconds=250)
"""At such moments, freshness is looked at: the sources change all the time."""
_SCRIPT = """\\set id random(1, {rows})
update {table} set cents = cents + 1 where id = :id;
"""


def beside_the_application(stage: Stage) -> list[Figure]:
    """pgbench on sources that a sidecar follows, and on equal tables while it is frozen, in turns."""
    tables = stage.sizes.beside_tables
    sources = {
        FOLLOWED: [f"followed_{n}" for n in range(SOURCES)],
        PLAIN: [f"plain_{n}" for n in range(SOURCES)],
    }
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: {side: [] for side in sources})
    spans: list[tuple[datetime, datetime]] = []
    with stage.database("beside_the_application") as place:
        make_sources(place.connection, [*sources[FOLLOWED], *sources[PLAIN]])
        with place.connection.transaction():
            for name, query in levels("kept", sources[FOLLOWED], 1, tables):
                create(place.connection, name, query, "calculated", "DIFFERENTIAL")
        place.settle()
        with sidecar(place) as beside:
            wait_until_loaded(place)
            for number in range(1 + stage.sizes.long_rounds):
                for side in sources if number % 2 else reversed(sources):
                    let(beside, runs=side == FOLLOWED)
                    # the sidecar needs a moment to notice that the application is busy
                    pgbench(place.dsn, _scripts(sources[side]), WARMING_SECONDS)
                    began = place.now()
                    measured = _run(place, sources[side], stage.sizes.seconds)
                    if side == FOLLOWED:
                        ended = place.now()
                        wait_until_followed(place)
                        spans += [(began, ended)] if number else []
                    for what, value in measured.items() if number else ():
                        found[what][side].append(value)
        fresh = _freshness(place, spans)
        place.trickle.verify()
    return _figures(tables, found, fresh)


def _figures(tables: int, found: dict[str, dict[str, list[float]]], fresh: list[float]) -> list[Figure]:
    beside = f"beside {tables} stream tables that refresh ÷ without pgtrickle"
    latency = f"latency of {PACE} updates per second, {beside}"
    note = f"half within {median(fresh):.3g} s; the application at full speed and at its pace, in turns"
    return [
        ratio(
            f"updates per second, {CLIENTS} clients, {beside}",
            FOLLOWED,
            PLAIN,
            found["rate"],
            at_least(0.6),
            unit="/s",
        ),
        ratio(f"{latency}, median", FOLLOWED, PLAIN, found["p50"], at_most(2), unit="ms"),
        ratio(f"{latency}, 99 %", FOLLOWED, PLAIN, found["p99"], at_most(2), unit="ms"),
        Figure(f"the {tables} stream tables: 95 % fresh within", percentile(fresh, 95), "s", note=note),
    ]


def _run(place: Place, tables: list[str], seconds: int) -> dict[str, float]:
    """As fast as it goes, then at a pace."""
    scripts = _scripts(tables)
    fast = pgbench(place.dsn, scripts, seconds)
    paced = pgbench(place.dsn, scripts, seconds, per_second=PACE)
    return {
        "rate": fast.per_second,
        "p50": percentile(paced.latencies, 50),
        "p99": percentile(paced.latencies, 99),
    }


def _scripts(tables: list[str]) -> list[str]:
    return [_SCRIPT.format(rows=ROWS, table=table) for table in tables]


def _freshness(place: Place, spans: list[tuple[datetime, datetime]]) -> list[float]:
    """How long a change would have waited in each stream table, at moments while the application wrote."""
    shown = refreshes(place.connection)
    moments = [began + n * STEP for began, ended in spans for n in range((ended - began) // STEP - 2)]
    return waits([Change("any", moment) for moment in moments], {"any": list(shown)}, shown)
