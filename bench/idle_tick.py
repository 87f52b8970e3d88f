"""A tick of the sidecar when nothing has changed."""

from __future__ import annotations

import time
from statistics import median

from bench.figures import Figure, at_most
from bench.shop import make_customers, make_orders, query
from bench.stage import Stage
from bench.timing import milliseconds
from pgtrickle.pipeline.session import Spark
from pgtrickle.refresh.engine import Engine
from pgtrickle.scheduler.service.loop import POLL_SECONDS, Loop

STREAM_TABLES = 6
WARMING = 5


def idle_tick(stage: Stage) -> list[Figure]:
    """Ticks at the sidecar's own pace, with an engine that would fail if it asked for Spark."""
    took = []
    with stage.database("idle_tick") as place:
        make_customers(place.connection)
        make_orders(place.connection, "orders", stage.sizes.few_orders)
        for number in range(STREAM_TABLES):
            schedule = "1s" if number % 2 else "calculated"
            place.trickle.create_stream_table(f"by_region_{number}", query("orders"), schedule)
            place.trickle.refresh(f"by_region_{number}")
        place.settle()
        engine = Engine(place.dsn, _no_spark)
        try:
            with Loop(engine, lambda _: None).dispatcher() as dispatcher:
                for number in range(WARMING + stage.sizes.ticks):
                    tick = milliseconds(dispatcher.tick)
                    if number >= WARMING:
                        took.append(tick)
                    time.sleep(POLL_SECONDS)
        finally:
            engine.close()
    what = f"idle tick, {STREAM_TABLES} stream tables, no Spark job"
    return [Figure(what, median(took), "ms", at_most(5), samples={"milliseconds": took})]


def _no_spark() -> Spark:
    raise AssertionError("an idle tick has asked for Spark")
