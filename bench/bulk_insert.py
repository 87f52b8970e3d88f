"""What capture costs an application that inserts many rows in one statement."""

from __future__ import annotations

from functools import partial

from bench.figures import Figure, at_most, ratio
from bench.shop import CUSTOMERS, make_customers, make_orders, query
from bench.stage import Stage
from bench.timing import milliseconds

WARMING = 3


def bulk_insert(stage: Stage) -> list[Figure]:
    """The same statement, committed by itself, on a captured table and on its twin, in turns."""
    samples: dict[str, list[float]] = {"captured": [], "plain": []}
    with stage.database("bulk_insert") as place:
        make_customers(place.connection)
        for name in samples:
            make_orders(place.connection, name, stage.sizes.few_orders)
        place.trickle.create_stream_table("by_region", query("captured"), None)
        place.settle()
        for number in range(WARMING + stage.sizes.rounds):
            for name in samples if number % 2 else reversed(samples):
                took = milliseconds(partial(place.connection.execute, insert(name, stage.sizes.bulk)))
                if number >= WARMING:
                    samples[name].append(took)
    what = f"bulk insert of {stage.sizes.bulk:,} rows with capture ÷ without"
    return [ratio(what, "captured", "plain", samples, at_most(1.6), unit="ms")]


def insert(orders: str, count: int) -> str:
    """The statement that inserts so many orders."""
    return (
        f"insert into {orders} (customer, amount) select 1 + n * 7919 % {CUSTOMERS}, n / 100.0"
        f" from generate_series(1, {count}) n"
    )
