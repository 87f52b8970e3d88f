"""A window that changes a tenth of a large table, and its first load, beside a materialized view."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psutil  # type: ignore[import-untyped]

from bench.figures import Figure
from bench.shop import make_orders
from bench.stage import Place, Stage
from bench.timing import milliseconds

QUERY = "select id, customer, amount * 2 as twice, status from orders where amount > 10"
WAIT_SECONDS = 0.2


def large_window(stage: Stage) -> list[Figure]:
    """One load and one window each, since they take long; a tenth of the rows is updated in one statement."""
    count = stage.sizes.many_orders
    changed = count // 10
    with stage.database("large_window") as place, _peak_memory(stage) as peak:
        make_orders(place.connection, "orders", count)
        place.settle()
        view = _seconds(place, f"create materialized view viewed as {QUERY}")
        place.trickle.create_stream_table("followed", QUERY, None, "DIFFERENTIAL")
        load = milliseconds(lambda: place.trickle.refresh("followed")) / 1000
        place.connection.execute("update orders set amount = amount + 1 where mod(id, 10) = 0")
        window = milliseconds(lambda: place.trickle.refresh("followed")) / 1000
        again = _seconds(place, "refresh materialized view viewed")
        place.trickle.verify("followed")
    most = {name: {"MB": round(size / 1e6)} for name, size in peak.items()}
    return [
        Figure(
            f"first load of {count:,} orders, row by row",
            load,
            "s",
            note=f"{count / load:,.0f} rows/s; the materialized view took {view:.1f} s",
            details=most,
        ),
        Figure(
            f"refresh after {changed:,} of {count:,} orders changed",
            window,
            "s",
            note=f"{changed / window:,.0f} rows/s; REFRESH MATERIALIZED VIEW took {again:.1f} s",
        ),
    ]


def _seconds(place: Place, statement: str) -> float:
    return milliseconds(lambda: place.connection.execute(statement)) / 1000


@contextmanager
def _peak_memory(stage: Stage) -> Iterator[dict[str, int]]:
    """The most memory of this process, of Spark's JVM, and of its largest Python worker."""
    peak = {"this process": 0, "Spark's JVM": 0, "largest Python worker": 0}
    done = threading.Event()
    jvm = stage.spark._process
    assert jvm is not None

    def watch() -> None:
        root = psutil.Process(jvm.pid)
        while not done.wait(WAIT_SECONDS):
            found = {
                "this process": psutil.Process().memory_info().rss,
                "Spark's JVM": root.memory_info().rss,
            }
            workers = [_resident(child) for child in root.children(recursive=True)]
            found["largest Python worker"] = max(workers, default=0)
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
    try:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0
