"""From creating a stream table over a large table to its being ACTIVE."""

from __future__ import annotations

from statistics import median

from bench.figures import Figure
from bench.shop import make_customers, make_orders, query
from bench.stage import Place, Stage
from bench.timing import milliseconds


def first_load(stage: Stage) -> list[Figure]:
    """Creates and drops the stream table again and again; Spark is warm, as in a sidecar that runs."""
    seconds = []
    with stage.database("first_load") as place:
        make_customers(place.connection)
        make_orders(place.connection, "orders", stage.sizes.orders)
        place.settle()
        for number in range(1 + stage.sizes.long_rounds):
            took = milliseconds(lambda: _load(place)) / 1000
            place.trickle.verify("by_region")
            place.trickle.drop_stream_table("by_region")
            if number:
                seconds.append(took)
    what = f"first load to ACTIVE, {stage.sizes.orders:,} orders"
    return [Figure(what, median(seconds), "s", samples={"seconds": seconds})]


def _load(place: Place) -> None:
    place.trickle.create_stream_table("by_region", query("orders"), None, "DIFFERENTIAL")
    place.trickle.refresh("by_region")
