"""Many small stream tables whose sources change all the time: how many refreshes, and how fresh they keep."""

from __future__ import annotations

import random
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from statistics import median
from unittest.mock import patch

from bench.crowd import create
from bench.figures import Figure
from bench.freshness import Change, committed, refreshes, waits
from bench.layers import ROWS, levels, make_sources
from bench.serving import serving, wait_until_followed, wait_until_loaded
from bench.stage import Place, Stage
from bench.timing import percentile
from pgtrickle.model.stream_table import StreamTableId
from pgtrickle.scheduler.policy.graph import Graph
from pgtrickle.scheduler.policy.units import Unit

GROUPED, ALONE = "as it is", "every table a unit of its own"
CHANGED = 5
"""Rows of a source that change each second, in one transaction."""
WARMING = 4
"""Changes that every stream table follows before any is counted, so that its plan is kept."""


def steady_state(stage: Stage) -> list[Figure]:
    """The same minute twice: as the sidecar groups what is due, and with every stream table by itself."""
    sizes = stage.sizes
    sources = [f"source_{n}" for n in range(sizes.steady_sources)]
    with stage.database("steady_state") as place:
        make_sources(place.connection, sources)
        readers: dict[str, list[str]] = {source: [] for source in sources}
        with place.connection.transaction():
            for n, (name, query) in enumerate(levels("kept", sources, 1, sizes.steady_tables)):
                create(place.connection, name, query, "calculated", "DIFFERENTIAL")
                readers[sources[n % len(sources)]].append(name)
        place.settle()
        with serving(place):
            wait_until_loaded(place)
        sides = {side: _kept(place, readers, side, sizes.steady_seconds) for side in (GROUPED, ALONE)}
        place.trickle.verify()
    what = f"{sizes.steady_tables} stream tables over {sizes.steady_sources} sources, all touched each second"
    note = "; ".join(f"{side}: {kept}" for side, kept in sides.items())
    fresh = {side: kept.seconds for side, kept in sides.items()}
    rates = {side: [kept.per_second] for side, kept in sides.items()}
    return [
        Figure(f"{what}: refreshes", sides[GROUPED].per_second, "/s", note=note, samples=rates),
        Figure(f"{what}: 95 % fresh within", percentile(fresh[GROUPED], 95), "s", note=note, samples=fresh),
    ]


@dataclass(frozen=True, slots=True)
class Kept:
    """What a side achieved."""

    per_second: float
    seconds: list[float]

    def __str__(self) -> str:
        fresh = f"half within {median(self.seconds):.3g} s, 95 % within {percentile(self.seconds, 95):.3g} s"
        return f"{self.per_second:.3g} refreshes/s, {fresh}"


def _kept(place: Place, readers: dict[str, list[str]], side: str, seconds: int) -> Kept:
    with nullcontext() if side == GROUPED else _one_by_one(), serving(place):
        for _ in range(WARMING):
            _write(place, list(readers), 1)
            wait_until_followed(place)
        begun = place.now()
        changes = _write(place, list(readers), seconds)
        ended = place.now()
        wait_until_followed(place)
    shown = refreshes(place.connection)
    done = sum(begun <= one.committed < ended for of_table in shown.values() for one in of_table)
    return Kept(done / seconds, waits(changes, readers, shown))


def _write(place: Place, sources: Sequence[str], seconds: int) -> list[Change]:
    """Change some rows of every source each second; a source has its own transaction."""
    drawn, xids = random.Random(seconds), {}
    started = time.monotonic()
    for second in range(seconds):
        for source in sources:
            rows = [drawn.randint(1, ROWS) for _ in range(CHANGED)]
            change = f"update {source} set cents = cents + 1 where id = any (%s)"
            with place.connection.transaction():
                place.connection.execute(change, (rows,))
                row = place.connection.execute("select pg_current_xact_id()::text::bigint").fetchone()
            assert row is not None
            xids[row[0]] = source
        time.sleep(max(0.0, started + second + 1 - time.monotonic()))
    return committed(place.connection, xids)


@contextmanager
def _one_by_one() -> Iterator[None]:
    """The sidecar refreshes each stream table by itself while this is open."""

    def alone(due: Sequence[StreamTableId], graph: Graph, *, slow: Collection[StreamTableId]) -> list[Unit]:
        return [Unit((table,)) for table in due]

    with patch("pgtrickle.scheduler.service.dispatcher.units", new=alone):
        yield
