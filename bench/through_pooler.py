"""A small refresh through PgBouncer in transaction mode, against the same one straight to the server."""

from __future__ import annotations

from typing import Final

import pgtrickle
from bench.figures import Figure, at_most, ratio
from bench.shop import Changes, make_customers, make_orders, query
from bench.stage import Stage
from bench.timing import milliseconds
from pgtrickle.embedded import SUPERUSER
from pgtrickle.refresh.story import refresh
from tests.fixtures.poolers import new_pooler, program

THROUGH, DIRECT, UNPREPARED = "through PgBouncer", "direct", "direct, pooler_compatibility_mode"
WHAT: Final = "small refresh through PgBouncer ÷ direct"
CHANGES: Final = 50
WARMING: Final = 5
DATABASE: Final = "through_pooler"


def through_pooler(stage: Stage) -> list[Figure]:
    """Each round changes rows, which three stream tables follow: each by its way, each first in turn."""
    if program() is None:
        return [Figure(WHAT, None, bar=at_most(1.2), note="PgBouncer is not installed here")]
    samples: dict[str, list[float]] = {THROUGH: [], DIRECT: [], UNPREPARED: []}
    with (
        stage.database(DATABASE) as place,
        new_pooler(stage.server, (SUPERUSER,)) as pooler,
        pgtrickle.connect(pooler.dsn(DATABASE, SUPERUSER), stage.spark.large) as behind,
    ):
        make_customers(place.connection)
        make_orders(place.connection, "orders", stage.sizes.few_orders)
        place.settle()
        engines = {THROUGH: behind.engine, DIRECT: place.trickle.engine, UNPREPARED: place.trickle.engine}
        tables = {}
        for number, way in enumerate(engines):
            name = f"by_region_{number}"
            place.trickle.create_stream_table(
                name,
                query("orders"),
                None,
                "DIFFERENTIAL",
                pooler_compatibility_mode=way == UNPREPARED,
            )
            place.trickle.refresh(name)
            tables[way] = place.id_of(name)
        assert behind.engine.pool.is_pooled
        changes = Changes(place.connection, "orders")
        ways = list(engines)
        for number in range(WARMING + stage.sizes.rounds):
            changes.make(CHANGES)
            for way in ways[number % 3 :] + ways[: number % 3]:
                took = milliseconds(
                    lambda way=way: refresh(engines[way], tables[way], initiated_by="bench", waits=True)  # type: ignore[misc]
                )
                if number >= WARMING:
                    samples[way].append(took)
        place.trickle.verify()
    both = {way: samples[way] for way in (THROUGH, DIRECT)}
    prepared = {way: samples[way] for way in (DIRECT, UNPREPARED)}
    return [
        ratio(WHAT, THROUGH, DIRECT, both, at_most(1.2), unit="ms"),
        ratio(
            "small refresh with prepared statements ÷ without", DIRECT, UNPREPARED, prepared, None, unit="ms"
        ),
    ]
