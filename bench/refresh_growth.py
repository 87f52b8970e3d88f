"""The same refresh on a large table and on a small one: it should not notice the difference."""

from __future__ import annotations

from functools import partial

from bench.figures import Figure, at_most, ratio
from bench.shop import Changes, make_customers, make_orders, query
from bench.stage import Stage
from bench.timing import milliseconds, phased, typical
from pgtrickle.refresh.story import refresh

WARMING = 5


def refresh_growth(stage: Stage) -> list[Figure]:
    """Both tables get a round of changes and are refreshed, the large one first in every second round."""
    counts = {"many": stage.sizes.many_orders, "few": stage.sizes.few_orders}
    samples: dict[str, list[float]] = {f"{count:,} orders": [] for count in counts.values()}
    phases: dict[str, list[dict[str, float]]] = {label: [] for label in samples}
    with stage.database("refresh_growth") as place:
        make_customers(place.connection)
        for name, count in counts.items():
            make_orders(place.connection, name, count)
            place.trickle.create_stream_table(f"by_region_{name}", query(name), None, "DIFFERENTIAL")
        place.settle()
        for name in counts:
            place.trickle.refresh(f"by_region_{name}")
        engine = place.trickle.engine
        sides = [
            (label, place.id_of(f"by_region_{name}"), Changes(place.connection, name))
            for label, name in zip(samples, counts, strict=True)
        ]
        for number in range(WARMING + stage.sizes.rounds):
            for label, table, changes in sides if number % 2 else reversed(sides):
                changes.make(stage.sizes.changes)
                with phased() as steps:
                    took = milliseconds(partial(refresh, engine, table, initiated_by="bench", waits=True))
                if number >= WARMING:
                    samples[label].append(took)
                    phases[label].append(steps)
        place.trickle.verify()
    what = f"the same refresh at {counts['many']:,} orders ÷ at {counts['few']:,}"
    details = {f"milliseconds of each step, {label}": typical(rounds) for label, rounds in phases.items()}
    many, few = samples
    return [ratio(what, many, few, samples, at_most(1.3), unit="ms", details=details)]
