"""What an application notices of stream tables that follow its tables."""

from __future__ import annotations

from contextlib import nullcontext

from bench.crowd import create
from bench.figures import Figure, ratio
from bench.layers import ROWS, levels, make_sources
from bench.pgbench import CLIENTS, Ran, pgbench
from bench.serving import serving, wait_until_followed, wait_until_loaded
from bench.stage import Place, Stage

SOURCES = 10
FOLLOWED, PLAIN = "followed", "without pgtrickle"
PACE = 100
"""Transactions per second of an application that has time to spare."""
_SCRIPT = """\\set id random(1, {rows})
update {table} set cents = cents + 1 where id = :id;
"""


def beside_the_application(stage: Stage) -> list[Figure]:
    """pgbench on sources that a sidecar follows, and on equal tables while none runs, in turns."""
    tables = stage.sizes.beside_tables
    sources = {
        FOLLOWED: [f"followed_{n}" for n in range(SOURCES)],
        PLAIN: [f"plain_{n}" for n in range(SOURCES)],
    }
    fast: dict[str, list[float]] = {side: [] for side in sources}
    paced: dict[str, list[float]] = {side: [] for side in sources}
    with stage.database("beside_the_application") as place:
        make_sources(place.connection, [*sources[FOLLOWED], *sources[PLAIN]])
        with place.connection.transaction():
            for name, query in levels("kept", sources[FOLLOWED], 1, tables):
                create(place.connection, name, query, "calculated", "DIFFERENTIAL")
        place.settle()
        with serving(place):
            wait_until_loaded(place)
        for number in range(1 + stage.sizes.long_rounds):
            for side in sources if number % 2 else reversed(sources):
                quick, slow = _run(place, sources[side], stage.sizes.seconds, side == FOLLOWED)
                if number:
                    fast[side].append(quick.per_second)
                    paced[side].append(slow.milliseconds)
        place.trickle.verify()
    beside = f"beside {tables} stream tables that refresh ÷ without pgtrickle"
    return [
        ratio(f"updates per second, {CLIENTS} clients, {beside}", FOLLOWED, PLAIN, fast, None, unit="/s"),
        ratio(f"latency of {PACE} updates per second, {beside}", FOLLOWED, PLAIN, paced, None, unit="ms"),
    ]


def _run(place: Place, tables: list[str], seconds: int, is_followed: bool) -> tuple[Ran, Ran]:
    """As fast as it goes, then at a pace; what it left to follow is followed before the next."""
    scripts = [_SCRIPT.format(rows=ROWS, table=table) for table in tables]
    with serving(place) if is_followed else nullcontext():
        ran = (
            pgbench(place.dsn, scripts, seconds),
            pgbench(place.dsn, scripts, seconds, per_second=PACE),
        )
        if is_followed:
            wait_until_followed(place)
    return ran
