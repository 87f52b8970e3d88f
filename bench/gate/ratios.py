"""What the gate measures: pairs of actions, timed in turns, whose ratio does not depend on the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Final

from bench.bulk_insert import insert
from bench.capture_cost import CAPTURED, PLAIN, make_wide, statements
from bench.crowd import crowd
from bench.idling import ticking
from bench.layers import Together, chain, diamond, levels, made, make_sources
from bench.refresh_cost import trivial_job
from bench.shop import Changes, make_customers, make_orders, query
from bench.stage import Place, Stage
from bench.timing import milliseconds
from pgtrickle.model.stream_table import StreamTableId
from pgtrickle.refresh.story import refresh

Timed = Callable[[], float]
"""Does something once and tells how many milliseconds of it count."""

ROUNDS: Final = 10
WARMING: Final = 3
CHANGES: Final = 1_000
BULK: Final = 10_000
TICKS: Final = 20


@dataclass(frozen=True, slots=True)
class Pair:
    """A cost and its yardstick."""

    cost: Timed
    yardstick: Timed

    def warm(self) -> None:
        """Run both without counting."""
        for _ in range(WARMING):
            self.cost()
            self.yardstick()

    def ratio(self) -> float:
        """The median of what each round gave; both sides meet whatever else the machine does."""
        found = []
        for number in range(ROUNDS):
            if number % 2:
                cost, yardstick = self.cost(), self.yardstick()
            else:
                yardstick, cost = self.yardstick(), self.cost()
            found.append(cost / yardstick)
        return median(found)


@contextmanager
def pairs(stage: Stage) -> Iterator[Mapping[str, Pair]]:
    """All that the gate measures, ready to run; what has followed changes is verified at the end."""
    with ExitStack() as stack:
        shop = stack.enter_context(stage.database("gate_shop"))
        layers = stack.enter_context(stage.database("gate_layers"))
        wide = stack.enter_context(stage.database("gate_wide"))
        choices = stack.enter_context(stage.database("gate_choices"))
        resting = stack.enter_context(stage.database("gate_resting"))
        tables = stage.sizes.many_tables[0]
        crowd(resting, tables)
        found = {
            **_shop(stage, shop),
            **_choices(stage, choices),
            **_layers(stage, layers),
            **_writes(wide),
            f"idle tick, {tables:,} stream tables ÷ trivial query": Pair(
                partial(_ticked, resting), partial(_queried, resting)
            ),
        }
        for pair in found.values():
            pair.warm()
        yield found
        shop.trickle.verify()
        layers.trickle.verify()
        choices.trickle.verify()


def _shop(stage: Stage, place: Place) -> dict[str, Pair]:
    make_customers(place.connection)
    counts = {"many": stage.sizes.orders // 2, "few": stage.sizes.few_orders // 2}
    for name, count in counts.items():
        make_orders(place.connection, name, count)
        place.trickle.create_stream_table(f"by_region_{name}", query(name), None, "DIFFERENTIAL")
    for name in ("captured", "plain"):
        make_orders(place.connection, name, 1_000)
    place.trickle.create_stream_table("by_region_captured", query("captured"), None, "DIFFERENTIAL")
    place.settle()
    for name in (*counts, "captured"):
        place.trickle.refresh(f"by_region_{name}")
    many, few = (_changed_and_refreshed(place, name) for name in counts)
    captured, plain = (partial(_inserted, place, name) for name in ("captured", "plain"))
    return {
        f"refresh, {CHANGES:,} orders changed ÷ trivial Spark job": Pair(few, _trivial_job(place)),
        f"the same refresh at {counts['many']:,} orders ÷ at {counts['few']:,}": Pair(many, few),
        f"insert of {BULK:,} rows with capture ÷ without": Pair(captured, plain),
    }


def _writes(place: Place) -> dict[str, Pair]:
    make_wide(place, BULK)
    # what is updated and deleted is there before; only what is inserted is new
    captured, plain = (
        {kind: statement for kind, statement in statements(name, 0, BULK) if kind != "insert"}
        for name in (CAPTURED, PLAIN)
    )
    return {
        f"{kind} of {BULK:,} rows with capture ÷ without": Pair(
            partial(_undone, place, captured[kind]), partial(_undone, place, plain[kind])
        )
        for kind in captured
    }


def _choices(stage: Stage, place: Place) -> dict[str, Pair]:
    """AUTO against the better of the other modes: where following wins, and where PostgreSQL does."""
    make_customers(place.connection)
    found, count = {}, stage.sizes.few_orders // 2
    for name, changed in (("small", CHANGES), ("large", count // 2)):
        make_orders(place.connection, name, count)
        tables = {}
        for mode in ("AUTO", "DIFFERENTIAL", "FULL"):
            place.trickle.create_stream_table(f"{name}_{mode.lower()}", query(name), None, mode)
            tables[mode] = place.id_of(f"{name}_{mode.lower()}")
        place.settle()
        for mode in tables:
            place.trickle.refresh(f"{name}_{mode.lower()}")
        changes = Changes(place.connection, name)
        what = f"AUTO, {changed:,} of {count:,} orders changed ÷ the better mode"
        auto = partial(_fastest, place, changes, changed, (tables.pop("AUTO"),))
        found[what] = Pair(auto, partial(_fastest, place, changes, changed, tuple(tables.values())))
    return found


def _fastest(place: Place, changes: Changes, count: int, tables: tuple[StreamTableId, ...]) -> float:
    """Both sides of the pair change as many rows, so each refresh meets two changes."""
    changes.make(count)
    engine = place.trickle.engine
    return min(
        milliseconds(partial(refresh, engine, table, initiated_by="bench", waits=True)) for table in tables
    )


def _layers(stage: Stage, place: Place) -> dict[str, Pair]:
    sources = ("first", "second", "third", "fourth")
    make_sources(place.connection, sources)
    long, wide = stage.sizes.chain, stage.sizes.wide
    single = made(place, chain("single", "first", 1), "first")
    linked = made(place, chain("link", "second", long), "second")
    facets = made(place, diamond("facet", "third"), "third")
    beside = made(place, levels("beside", ["fourth"], 1, wide), "fourth")
    place.settle()
    alone = partial(_followed, single)
    return {
        f"chain of {long} ÷ single refresh": Pair(partial(_followed, linked), alone),
        "diamond of 4 arms ÷ single refresh": Pair(partial(_followed, facets), alone),
        f"{wide} stream tables together ÷ one by one": Pair(
            partial(_followed, beside), partial(_followed_one_by_one, beside)
        ),
    }


def _changed_and_refreshed(place: Place, orders: str) -> Timed:
    changes, table = Changes(place.connection, orders), place.id_of(f"by_region_{orders}")

    def once() -> float:
        changes.make(CHANGES)
        return milliseconds(lambda: refresh(place.trickle.engine, table, initiated_by="bench", waits=True))

    return once


def _trivial_job(place: Place) -> Timed:
    job = trivial_job(place.trickle.engine.spark.small)
    return lambda: milliseconds(job)


def _inserted(place: Place, orders: str) -> float:
    return _undone(place, insert(orders, BULK))


def _undone(place: Place, statement: str) -> float:
    """Rolled back, so that it costs the same the next time."""
    with place.connection.transaction(force_rollback=True):
        return milliseconds(lambda: place.connection.execute(statement))


def _followed(group: Together) -> float:
    group.change()
    return milliseconds(group.refresh)


def _followed_one_by_one(group: Together) -> float:
    group.change()
    return milliseconds(group.refresh_each)


def _ticked(place: Place) -> float:
    """So short an action is timed several times at once; the first look of a sidecar asks for more."""
    with ticking(place) as tick:
        tick()
        return milliseconds(lambda: [tick() for _ in range(TICKS)])


def _queried(place: Place) -> float:
    ask = partial(place.connection.execute, "select 1")
    return milliseconds(lambda: [ask().fetchall() for _ in range(TICKS)])
