"""A scrape of the metrics with ten thousand stream tables, and what it does to the ticks beside it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from bench.crowd import crowd
from bench.figures import Figure, at_most
from bench.idling import no_spark
from bench.stage import Place, Stage
from bench.timing import milliseconds, percentile
from pgtrickle.interfaces.metrics import Metrics
from pgtrickle.model.stream_table import Action, RefreshOutcome
from pgtrickle.refresh.engine import Engine
from pgtrickle.scheduler.service.dispatcher import Dispatcher
from pgtrickle.scheduler.service.loop import POLL_SECONDS, Loop, RefreshEvent
from tests.fixtures.waiting import eventually

LIMIT = 200.0
WARMING = 5
SCRAPES = 50
BETWEEN_SCRAPES = 1.0
"""Seconds; Prometheus usually waits 15."""
SLOWER = 1.1
"""Ticks beside scrapes may take this much longer, which is less than they differ from run to run."""


def scraping(stage: Stage) -> list[Figure]:
    """Scrapes of an idle crowd, then with every stream table behind; ticks with and without scrapes."""
    tables = stage.sizes.many_tables[1]
    with stage.database("scraping") as place:
        crowd(place, tables)
        with _sidecar(place) as (metrics, dispatcher):
            _refresh_all(metrics, dispatcher)
            eventually(lambda: b"pgtrickle_change_buffer_bytes{" in metrics.render(), seconds=60)
            took, _ = _scrapes(metrics)
            alone, beside = _ticks(dispatcher, metrics, stage.sizes.ticks)
            gathered = milliseconds(metrics.gathering.gather)
            known = dispatcher._state
            assert known.pending() == {}, "something was due although nothing has changed"
            assert dispatcher.seen is not None
            # nothing is dispatched from here on
            known.mark_behind(known.states, dispatcher.seen, datetime.now(UTC))
            behind, worked = _scrapes(metrics)
            size = len(metrics.render())
    median_alone, median_beside = percentile(alone, 50), percentile(beside, 50)
    return [
        Figure(
            f"/metrics, {tables:,} stream tables, 95 %",
            percentile(took, 95),
            "ms",
            at_most(LIMIT),
            f"median {percentile(took, 50):.3g} ms; {size / 1024:,.0f} kB; what is gathered beside it takes"
            f" {gathered:.3g} ms",
            {"milliseconds": took},
        ),
        Figure(
            "the same with all of them behind, 95 %",
            percentile(behind, 95),
            "ms",
            at_most(LIMIT),
            f"median {percentile(behind, 50):.3g} ms, CPU time {percentile(worked, 50):.3g} ms",
            {"milliseconds": behind, "CPU time": worked},
        ),
        Figure(
            f"idle tick, {tables:,} stream tables, scraped every second ÷ not scraped",
            median_beside / median_alone,
            bar=at_most(SLOWER),
            note=f"medians {median_beside:.3g} and {median_alone:.3g} ms; 95 % below"
            f" {percentile(beside, 95):.3g} and {percentile(alone, 95):.3g} ms",
            samples={"scraped": beside, "not scraped": alone},
        ),
    ]


@contextmanager
def _sidecar(place: Place) -> Iterator[tuple[Metrics, Dispatcher]]:
    """A sidecar that ticks when it is told to, with metrics."""
    engine = Engine(place.dsn, no_spark)
    metrics = Metrics(engine)
    loop = Loop(engine, metrics.note)
    metrics.watch(loop)
    try:
        with loop.dispatcher() as dispatcher:
            yield metrics, dispatcher
    finally:
        metrics.close()
        engine.close()


def _scrapes(metrics: Metrics) -> tuple[list[float], list[float]]:
    """Milliseconds of scrapes, elapsed and of CPU time."""
    took: list[float] = []
    worked: list[float] = []
    for _ in range(SCRAPES):
        began = time.thread_time()
        took.append(milliseconds(metrics.render))
        worked.append(1000 * (time.thread_time() - began))
    return took, worked


def _refresh_all(metrics: Metrics, dispatcher: Dispatcher) -> None:
    """Report one refresh of every stream table to the metrics."""
    now = datetime.now(UTC)
    for table in dispatcher.definitions.tables.values():
        outcome = RefreshOutcome(table.name, Action.DIFFERENTIAL, 1, 1, 10.0, "", 3.0, 4.0, 3.0, 1.0, 1.0)
        metrics.note(RefreshEvent(table.name, now, outcome=outcome))


def _ticks(dispatcher: Dispatcher, metrics: Metrics, count: int) -> tuple[list[float], list[float]]:
    """Milliseconds of ticks at the sidecar's own pace: without scrapes, and beside scrapes; by turns."""
    alone: list[float] = []
    beside: list[float] = []
    for number in range(4):
        is_scraped = number % 2 == 1
        stop = threading.Event()
        scraper = threading.Thread(target=_scrape, args=(metrics, stop), daemon=True)
        if is_scraped:
            scraper.start()
        for turn in range(WARMING + count // 2):
            spent = milliseconds(dispatcher.tick)
            if turn >= WARMING:
                (beside if is_scraped else alone).append(spent)
            time.sleep(POLL_SECONDS)
        stop.set()
        if is_scraped:
            scraper.join()
    return alone, beside


def _scrape(metrics: Metrics, stop: threading.Event) -> None:
    while not stop.wait(BETWEEN_SCRAPES):
        metrics.render()
