"""A refresh after a thousand changes, against the cheapest thing that Spark can do at all."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import SparkSession

from bench.figures import Figure, at_most, ratio
from bench.shop import Changes, make_customers, make_orders, query
from bench.stage import Stage
from bench.timing import milliseconds, phased, typical
from pgtrickle.refresh.story import refresh

REFRESH, TRIVIAL = "refresh", "trivial Spark job"
WARMING = 5
TRIVIAL_ROWS = 1_000


def refresh_cost(stage: Stage) -> list[Figure]:
    """Each round changes rows, then times a trivial job and the refresh in the same Spark session."""
    refreshes, trivial, phases = [], [], []
    with stage.database("refresh_cost") as place:
        make_customers(place.connection)
        make_orders(place.connection, "orders", stage.sizes.orders)
        place.settle()
        place.trickle.create_stream_table("by_region", query("orders"), None, "DIFFERENTIAL")
        place.trickle.refresh("by_region")
        engine, table = place.trickle.engine, place.id_of("by_region")
        changes, trivially = Changes(place.connection, "orders"), trivial_job(engine.spark.small)
        for number in range(WARMING + stage.sizes.rounds):
            changes.make(stage.sizes.changes)
            job = milliseconds(trivially)
            with phased() as steps:
                took = milliseconds(lambda: refresh(engine, table, initiated_by="bench", waits=True))
            if number >= WARMING:
                refreshes.append(took)
                trivial.append(job)
                phases.append(steps)
        place.trickle.verify("by_region")
    samples = {REFRESH: refreshes, TRIVIAL: trivial}
    what = f"refresh, {stage.sizes.orders:,} orders, {stage.sizes.changes:,} changed ÷ trivial Spark job"
    details = {"milliseconds of each step, median": typical(phases)}
    return [ratio(what, REFRESH, TRIVIAL, samples, at_most(5), unit="ms", details=details)]


def trivial_job(session: SparkSession) -> Callable[[], None]:
    """Some rows from Arrow and back to Arrow."""
    rows = pa.table({"id": range(TRIVIAL_ROWS), "amount": [n / 4 for n in range(TRIVIAL_ROWS)]})

    def run() -> None:
        answer = session.createDataFrame(rows).toArrow()
        assert answer.num_rows == rows.num_rows

    return run
