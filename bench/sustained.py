"""A stream that does not end: Nexmark at a rate, followed by eight stream tables."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psutil  # type: ignore[import-untyped]
import psycopg

import tests.nexmark
from bench.crowd import create
from bench.figures import Figure, Grid, at_least, at_most
from bench.freshness import Change, committed, refreshes, waits
from bench.serving import wait_until_followed, wait_until_loaded
from bench.sidecar import memory, sidecar
from bench.stage import Place, Stage
from bench.timing import percentile
from pgtrickle.scheduler.service.cpu_usage import cores
from tests.nexmark.asked import query

NAMES: Final = ("q02", "q03", "q04", "q07", "q08", "q14", "q17", "q20")
"""Those whose change can be computed without reading a whole day again, as q15 and q16 would have to."""
READERS: Final = {
    "person": ["q03", "q08"],
    "auction": ["q03", "q04", "q08", "q20"],
    "bid": ["q02", "q04", "q07", "q14", "q17", "q20"],
}
SHARES: Final = {"person": 0.02, "auction": 0.06, "bid": 0.92}
RATES: Final = (1_000, 2_500, 5_000, 10_000, 15_000, 20_000, 30_000, 40_000)
STEP_SECONDS: Final = 0.1
"""The rows of each table come in one transaction in this time."""
FRESH_SECONDS: Final = 2.0
GOAL: Final = 20_000

_INSERT: Final = {
    "person": "insert into person select n, 'A. Walton', n || '@example.org', '1111 2222', 'Portland',"
    " (array['or', 'id', 'ca', 'wa', 'az', 'wy'])[1 + n %% 6], clock_timestamp(), ''"
    " from generate_series(%(first)s::bigint, %(last)s) n",
    "auction": "insert into auction select n, 'lamp', 'as new, number ' || n, 10, 200, clock_timestamp(),"
    " clock_timestamp() + interval '20 seconds', %(people)s - (random() * 500)::bigint, 10 + n %% 5, ''"
    " from generate_series(%(first)s::bigint, %(last)s) n",
    "bid": "insert into bid select %(auctions)s - (random() * 400)::bigint,"
    " %(people)s - (random() * 500)::bigint,"
    " (array[100, 1000, 20000, 2000000])[1 + n %% 4] + (random() * 99)::bigint,"
    " (array['google', 'facebook', 'baidu', 'apple'])[1 + n %% 4],"
    " 'https://auctions.example.org/oak/elm/item.htm?query=1', clock_timestamp(), ''"
    " from generate_series(%(first)s::bigint, %(last)s) n",
}
_INDEXES: Final = ("bid (auction)", "bid (price)", "auction (seller)", "auction (category)")


@dataclass(slots=True)
class Site:
    """Writes events; the ids that it gives never come again."""

    connection: psycopg.Connection[Any]
    counts: dict[str, int] = field(default_factory=lambda: {"person": 2_000, "auction": 2_000, "bid": 0})
    owed: dict[str, float] = field(default_factory=lambda: dict.fromkeys(SHARES, 0.0))

    def write(self, rate: float, seconds: float) -> tuple[dict[int, str], int]:
        """Write at a rate; the transactions with their tables, and how many rows there were."""
        xids: dict[int, str] = {}
        rows, started, step = 0, time.monotonic(), 0
        while step * STEP_SECONDS < seconds:
            for table, share in SHARES.items():
                self.owed[table] += rate * STEP_SECONDS * share
                count = int(self.owed[table])
                if count:
                    self.owed[table] -= count
                    xids[self._insert(table, count)] = table
                    rows += count
            step += 1
            time.sleep(max(0.0, started + step * STEP_SECONDS - time.monotonic()))
        return xids, rows

    def _insert(self, table: str, count: int) -> int:
        first = self.counts[table] + 1
        self.counts[table] += count
        values = {"people": self.counts["person"], "auctions": self.counts["auction"]}
        with self.connection.transaction():
            self.connection.execute(_INSERT[table], {**values, "first": first, "last": self.counts[table]})
            row = self.connection.execute("select pg_current_xact_id()::text::bigint").fetchone()
        assert row is not None
        return int(row[0])


@dataclass(frozen=True, slots=True)
class Ran:
    """What became of one rate."""

    asked: float
    achieved: float
    fresh: tuple[float, ...]
    buffers: float
    """The largest size of all change buffers together, in megabytes."""
    python: float
    jvm: float

    @property
    def p95(self) -> float:
        return percentile(self.fresh, 95)

    @property
    def row(self) -> tuple[str, ...]:
        numbers = (self.achieved, percentile(self.fresh, 50), self.p95, self.buffers, self.python, self.jvm)
        return (f"{self.asked:,.0f}", *(f"{number:,.3g}" for number in numbers))


def sustained(stage: Stage) -> list[Figure]:
    """Raise the rate until the stream tables are no longer fresh; then twice that, and back."""
    seconds = stage.sizes.sustained_seconds
    with stage.database("sustained") as place:
        _create(place)
        with sidecar(place, "--cpu-share", str(cores())) as beside:
            wait_until_loaded(place)
            site = Site(place.connection)
            _run(place, site, beside, RATES[0], seconds)
            found: list[Ran] = []
            for rate in RATES:
                found.append(_run(place, site, beside, rate, seconds))
                if found[-1].p95 > FRESH_SECONDS:
                    break
            kept = [ran for ran in found if ran.p95 <= FRESH_SECONDS]
            best = kept[-1].asked if kept else RATES[0] / 2
            twice = _run(place, site, beside, 2 * best, seconds)
            again = _run(place, site, beside, best / 2, seconds)
        place.trickle.verify()
    headings = ("rows/s", "written", "half fresh within", "95 %", "buffers, MB", "Python, MB", "JVM, MB")
    grid = Grid("eight stream tables over Nexmark", headings, tuple(r.row for r in (*found, twice, again)))
    note = f"the highest of {', '.join(f'{ran.asked:,.0f}' for ran in found)} rows/s, {seconds} s each"
    return [
        Figure(
            f"eight stream tables over Nexmark: rows per second with 95 % fresh within {FRESH_SECONDS:g} s",
            best if kept else None,
            "/s",
            at_least(GOAL),
            note,
            grids=(grid,),
        ),
        Figure("the same at twice that rate: change buffers at most", twice.buffers, "MB"),
        Figure(
            "the same at half of it afterwards: 95 % fresh within", again.p95, "s", at_most(FRESH_SECONDS)
        ),
    ]


def _create(place: Place) -> None:
    schema = Path(tests.nexmark.__file__).with_name("schema.sql")
    place.connection.execute(schema.read_text())
    for index in _INDEXES:
        place.connection.execute(f"create index on {index}")
    Site(place.connection, dict.fromkeys(SHARES, 0)).write(20_000, 1)
    with place.connection.transaction():
        for name in NAMES:
            create(place.connection, name, query(name), "calculated", "DIFFERENTIAL")
    place.settle()


def _run(place: Place, site: Site, beside: psutil.Process, rate: float, seconds: float) -> Ran:
    """Write at a rate, and wait until everything is followed."""
    sizes, done = _Sizes(place.dsn, beside), threading.Event()
    watcher = threading.Thread(target=sizes.watch, args=(done,))
    watcher.start()
    try:
        xids, rows = site.write(rate, seconds)
        changes = committed(place.connection, xids)
        wait_until_followed(place)
    finally:
        done.set()
        watcher.join()
    fresh = _fresh(place, changes)
    return Ran(rate, rows / seconds, tuple(fresh), sizes.buffers, sizes.python, sizes.jvm)


def _fresh(place: Place, changes: Sequence[Change]) -> list[float]:
    began = min(change.committed for change in changes)
    shown = {
        name: [one for one in of_table if one.seen >= began]
        for name, of_table in refreshes(place.connection).items()
    }
    return waits(changes, READERS, shown)


@dataclass(slots=True)
class _Sizes:
    """The largest sizes that were seen."""

    dsn: str
    beside: psutil.Process
    buffers: float = 0.0
    python: float = 0.0
    jvm: float = 0.0

    def watch(self, done: threading.Event) -> None:
        query = (
            "select coalesce(sum(pg_total_relation_size(c.oid)), 0) / 1048576.0 from pg_class c"
            " where c.relnamespace = 'pgtrickle_changes'::regnamespace and c.relkind = 'r'"
        )
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            while not done.wait(1.0):
                row = connection.execute(query).fetchone()
                assert row is not None
                python, jvm = memory(self.beside)
                self.buffers = max(self.buffers, float(row[0]))
                self.python, self.jvm = max(self.python, python), max(self.jvm, jvm)
