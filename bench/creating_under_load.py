"""Creating stream tables while many others refresh: dispatch must not notice."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import pairwise
from statistics import median

import psycopg

from bench.crowd import Crowd, crowd
from bench.figures import Figure, at_most
from bench.serving import serving
from bench.stage import Place, Stage
from pgtrickle.scheduler.service.loop import POLL_SECONDS
from tests.fixtures.waiting import eventually

WATCHED = 2.0
"""Seconds after each creation, and as many without one."""
WITH, WITHOUT = "with a creation", "without"
ROWS = 64


def creating_under_load(stage: Stage) -> list[Figure]:
    """All stream tables are due all the time; in every second stretch of time another one is created."""
    stretches: dict[str, list[tuple[datetime, datetime]]] = {WITH: [], WITHOUT: []}
    with stage.database("creating_under_load") as place:
        group = crowd(place, stage.sizes.busy_tables)
        with serving(place), _writing(group):
            eventually(lambda: len(_starts(place)) > 1, seconds=300)
            for number in range(stage.sizes.creations):
                for side in (WITH, WITHOUT) if number % 2 else (WITHOUT, WITH):
                    begun = place.now()
                    if side == WITH:
                        query = f"select id, amount from source_{number % len(group.sources)} where kind < 5"
                        place.trickle.create_stream_table(f"late_{number}", query)
                    time.sleep(WATCHED)
                    stretches[side].append((begun, place.now()))
        starts, waits = _starts(place), _waits(place)
    gaps = {side: [_longest(starts, *times) for times in taken] for side, taken in stretches.items()}
    delay = (median(gaps[WITH]) - median(gaps[WITHOUT])) / POLL_SECONDS
    note = ", ".join(f"{side}: longest pause {median(found) * 1000:.4g} ms" for side, found in gaps.items())
    reached = f"{len(waits)} of {stage.sizes.creations} reached"
    first = Figure("from its creation to its first refresh", None, note=reached)
    if waits:
        first = Figure(first.what, median(waits), "s", note=reached, samples={"seconds": waits})
    what = f"creating one more while {stage.sizes.busy_tables:,} refresh: dispatch is delayed by"
    return [Figure(what, delay, "ticks", at_most(1), note, samples=gaps), first]


@contextmanager
def _writing(group: Crowd) -> Iterator[None]:
    """Every source gets a change again and again, about once a second."""
    stop = threading.Event()

    def write() -> None:
        with psycopg.connect(group.place.dsn, autocommit=True) as connection:
            row = 0
            while not stop.is_set():
                row = row % ROWS + 1
                group.change(group.sources, row, connection)
                stop.wait(1)

    writer = threading.Thread(target=write, name="writer")
    writer.start()
    try:
        yield
    finally:
        stop.set()
        writer.join()


def _longest(starts: list[datetime], begun: datetime, ended: datetime) -> float:
    """Seconds of the longest pause between two dispatches of which a part lies in that time."""
    before = max((start for start in starts if start <= begun), default=begun)
    after = min((start for start in starts if start >= ended), default=ended)
    moments = [before, *(start for start in starts if begun < start < ended), after]
    return max((b - a).total_seconds() for a, b in pairwise(moments))


def _starts(place: Place) -> list[datetime]:
    """When refreshes were started."""
    rows = place.connection.execute(
        "select distinct start_time from pgtrickle.pgt_refresh_history order by 1"
    )
    return [row[0] for row in rows]


def _waits(place: Place) -> list[float]:
    """Seconds between the creation of a late one and the start of its first refresh."""
    rows = place.connection.execute(
        "select extract(epoch from min(h.start_time) - s.created_at) from pgtrickle.pgt_stream_tables s"
        " join pgtrickle.pgt_refresh_history h using (pgt_id) where s.pgt_name like 'late%' group by s.pgt_id"
    )
    return [float(row[0]) for row in rows]
