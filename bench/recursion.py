"""One changed edge of a large tree, followed by a stream table that holds everything its root reaches."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from bench.figures import Figure, at_most, ratio
from bench.stage import Stage
from bench.timing import milliseconds
from pgtrickle.refresh.story import refresh

WARMING: Final = 3
_NAMES: Final = {"union all": "chart_all", "union": "chart"}
_SIDES: Final = ("stream table", "materialized view")


def recursion(stage: Stage) -> list[Figure]:
    """Each round moves one leaf and adds another one; both sides follow, in alternating order."""
    samples: dict[str, dict[str, list[float]]] = {kind: {side: [] for side in _SIDES} for kind in _NAMES}
    people = stage.sizes.orders
    with stage.database("recursion") as place:
        run = place.connection.execute
        run("create table staff (id int primary key, boss int)")
        run(f"insert into staff select n, nullif(n / 4, 0) from generate_series(1, {people}) n")
        run("create index on staff (boss)")
        run("vacuum analyze staff")
        for kind, name in _NAMES.items():
            place.trickle.create_stream_table(name, _query(kind), None, "DIFFERENTIAL")
            run(f"create materialized view {name}_view as {_query(kind)}")
        place.settle()
        for name in _NAMES.values():
            place.trickle.refresh(name)
            run(f"create index on {name} (id)")
        ids = {name: place.id_of(name) for name in _NAMES.values()}
        for number in range(WARMING + stage.sizes.long_rounds):
            run(f"insert into staff values ({people + number + 1}, {1000 + number})")
            run(f"update staff set boss = {2000 + number} where id = {people - number}")
            for kind, name in _NAMES.items():
                follow = partial(refresh, place.trickle.engine, ids[name], initiated_by="bench", waits=True)
                recompute = partial(run, f"refresh materialized view {name}_view")
                sides: dict[str, Callable[[], object]] = dict(zip(_SIDES, (follow, recompute), strict=True))
                for side in sides if number % 2 else reversed(sides):
                    took = milliseconds(sides[side])
                    if number >= WARMING:
                        samples[kind][side].append(took)
        place.trickle.verify()
    return [
        ratio(
            f"recursion ({kind}) over {people:,} rows, two edges changed ÷ REFRESH MATERIALIZED VIEW",
            *_SIDES,
            samples[kind],
            at_most(0.1),
            unit="ms",
        )
        for kind in _NAMES
    ]


def _query(kind: str) -> str:
    return (
        "with recursive chart(id, depth) as (select id, 0 from staff where boss is null"
        f" {kind} select s.id, c.depth + 1 from staff s join chart c on c.id = s.boss) select * from chart"
    )
