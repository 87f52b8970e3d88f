"""What capture costs an application that inserts one row at a time."""

from __future__ import annotations

from bench.figures import Figure, at_least, ratio
from bench.pgbench import CLIENTS, pgbench
from bench.shop import CUSTOMERS, make_customers, make_orders, query
from bench.stage import Stage

SCRIPT = """\\set customer random(1, {customers})
\\set cents random(1, 100000)
insert into {orders} (customer, amount) values (:customer, :cents / 100.0);
"""


def single_inserts(stage: Stage) -> list[Figure]:
    """Runs of pgbench on a captured table and on its twin, one after the other, in turns."""
    samples: dict[str, list[float]] = {"captured": [], "plain": []}
    with stage.database("single_inserts") as place:
        make_customers(place.connection)
        for name in samples:
            make_orders(place.connection, name, stage.sizes.few_orders)
        place.trickle.create_stream_table("by_region", query("captured"), None)
        place.settle()
        for number in range(1 + stage.sizes.long_rounds):
            for name in samples if number % 2 else reversed(samples):
                script = SCRIPT.format(customers=CUSTOMERS, orders=name)
                ran = pgbench(place.dsn, [script], stage.sizes.seconds)
                if number:
                    samples[name].append(ran.per_second)
    what = f"single-row inserts per second, {CLIENTS} clients, with capture ÷ without"
    return [ratio(what, "captured", "plain", samples, at_least(0.85), unit="/s")]
