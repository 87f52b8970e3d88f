"""A window that changes a tenth of a large table, and its first load, beside a materialized view."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil  # type: ignore[import-untyped]

from bench.figures import Figure
from bench.shop import make_orders
from bench.stage import Place, Stage
from bench.timing import milliseconds
from pgtrickle.model.settings import SparkPath

QUERY = "select id, customer, amount * 2 as twice, status from orders where amount > 10"
WAIT_SECONDS = 0.2


def large_window(stage: Stage) -> list[Figure]:
    """One load and one window each, since they take long; a tenth of the rows is updated in one statement.

    The smaller table is loaded and followed by Spark's tasks too, as on a cluster.
    """
    sizes = stage.sizes
    return [
        *_figures(stage, sizes.many_orders, SparkPath.AUTO),
        *_figures(stage, sizes.many_orders, SparkPath.DISTRIBUTED),
        *_figures(stage, sizes.most_orders, SparkPath.AUTO),
    ]


def _figures(stage: Stage, count: int, path: SparkPath) -> list[Figure]:
    changed = count // 10
    with stage.database("large_window") as place:
        place.trickle.engine.path = path
        make_orders(place.connection, "orders", count)
        place.settle()
        view = _seconds(place, f"create materialized view viewed as {QUERY}")
        place.trickle.create_stream_table("followed", QUERY, None, "DIFFERENTIAL")
        with _peak_memory(stage) as of_load:
            load = milliseconds(lambda: place.trickle.refresh("followed")) / 1000
        place.connection.execute("update orders set amount = amount + 1 where mod(id, 10) = 0")
        with _peak_memory(stage) as of_window:
            window = milliseconds(lambda: place.trickle.refresh("followed")) / 1000
        again = _seconds(place, "refresh materialized view viewed")
        place.trickle.verify("followed")
    by = " by tasks" if path is SparkPath.DISTRIBUTED else ""
    return [
        Figure(
            f"first load of {count:,} orders that keeps most rows{by}",
            load,
            "s",
            note=f"{count / load:,.0f} rows/s; the materialized view took {view:.1f} s,"
            f" {count / view:,.0f} rows/s: {load / view:.1f} ×",
            details=_megabytes(of_load),
        ),
        Figure(
            f"refresh{by} after {changed:,} of {count:,} orders changed",
            window,
            "s",
            note=f"{changed / window:,.0f} changed rows/s; REFRESH MATERIALIZED VIEW took {again:.1f} s,"
            f" {changed / again:,.0f} changed rows/s: {window / again:.1f} ×",
            details=_megabytes(of_window),
        ),
    ]


def _seconds(place: Place, statement: str) -> float:
    return milliseconds(lambda: place.connection.execute(statement)) / 1000


def _megabytes(peak: dict[str, int]) -> dict[str, dict[str, float]]:
    return {name: {"MB": round(size / 1e6)} for name, size in peak.items()}


@contextmanager
def _peak_memory(stage: Stage) -> Iterator[dict[str, int]]:
    """The most memory of this process, of Spark's JVM, and of its largest Python worker.

    Of the largest process of PostgreSQL, only what it does not share with others.
    """
    peak = {"this process": 0, "Spark's JVM": 0, "largest Python worker": 0, "largest server process": 0}
    done = threading.Event()
    jvm, server = stage.spark._process, stage.server._process
    assert jvm is not None
    assert server is not None

    def watch() -> None:
        root, postmaster = psutil.Process(jvm.pid), psutil.Process(server.pid)
        while not done.wait(WAIT_SECONDS):
            found = {
                "this process": _resident(psutil.Process()),
                "Spark's JVM": _resident(root),
                "largest Python worker": max(map(_resident, root.children(recursive=True)), default=0),
                "largest server process": max(map(_private, postmaster.children()), default=0),
            }
            for name, size in found.items():
                peak[name] = max(peak[name], size)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        done.set()
        watcher.join()


def _resident(process: psutil.Process) -> int:
    with suppress(psutil.NoSuchProcess):
        return int(process.memory_info().rss)
    return 0


def _private(process: psutil.Process) -> int:
    with suppress(psutil.NoSuchProcess):
        found = process.memory_info()
        return int(found.rss - found.shared)
    return 0
