"""Stream tables that move together: a chain, three levels of twenty, and a diamond, after one changed row."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from statistics import median

from bench.figures import Bar, Figure, at_most
from bench.stage import Connection, Place, Stage
from bench.timing import milliseconds, phased, typical
from pgtrickle.model.stream_table import Action
from pgtrickle.refresh.story import Failure, refresh_all

WARMING = 12
_ROWS = 1_000
_SOURCE = "create table items(id int primary key, g int, v int)"
_FILLED = "insert into items select n, n % 10, n from generate_series(1, {rows}) n"

Queries = list[tuple[str, str]]
"""The name and the query of each stream table, whoever is read before its readers."""


def together(stage: Stage) -> list[Figure]:
    """From one changed row to the commit of the last table."""
    return [
        _measured(stage, "chain of 10 stream tables, one changed row", _chain(), at_most(820)),
        _measured(stage, "3 levels × 20 stream tables, all touched", _levels(), at_most(2_400)),
        _measured(stage, "diamond of 4 arms, one changed row", _diamond(), at_most(200)),
    ]


def _chain() -> Queries:
    names = ["items", *(f"link_{n}" for n in range(10))]
    links = [(name, f"select id, g, v + 1 as v from {below} where g >= 0") for below, name in pairwise(names)]
    last, below = links[-1][0], links[-2][0]
    return [*links[:-1], (last, f"select g, sum(v) as v, count(*) as n from {below} group by g")]


def _levels() -> Queries:
    first = [(f"a_{n}", f"select id, g, v + {n} as v from items where v > -{n}") for n in range(20)]
    second = [(f"b_{n}", f"select g, sum(v) as v, count(*) as n from a_{n} group by g") for n in range(20)]
    return [*first, *second, *((f"c_{n}", f"select g, v from b_{n} where n > 0") for n in range(20))]


def _diamond() -> Queries:
    values = ("sum(v)", "count(*)", "max(v)", "min(v)")
    arms = [(f"arm_{n}", f"select g, {value} as v from items group by g") for n, value in enumerate(values)]
    top = (
        "select a.g, a.v as a, b.v as b, c.v as c, d.v as d"
        " from arm_0 a join arm_1 b on a.g = b.g join arm_2 c on c.g = a.g join arm_3 d on d.g = a.g"
    )
    return [*arms, ("top", top)]


def _measured(stage: Stage, what: str, queries: Queries, bar: Bar) -> Figure:
    times, phases = [], []
    with stage.database("together") as place:
        follow, change = _defined(place, queries), _changes(place.connection)
        for number in range(WARMING + stage.sizes.rounds):
            change(number)
            with phased() as steps:
                took = milliseconds(follow)
            if number >= WARMING:
                times.append(took)
                phases.append(steps)
        for name, _ in queries:
            place.trickle.verify(name)
    details = {"milliseconds of each step, median": typical(phases)}
    return Figure(what, median(times), unit="ms", bar=bar, samples={"milliseconds": times}, details=details)


def _defined(place: Place, queries: Queries) -> Callable[[], None]:
    """Create and load the tables; what refreshes all of them at once."""
    place.connection.execute(_SOURCE)
    place.connection.execute(_FILLED.format(rows=_ROWS))
    for name, query in queries:
        place.trickle.create_stream_table(name, query, None, "DIFFERENTIAL")
    engine, ids = place.trickle.engine, [place.id_of(name) for name, _ in queries]
    refresh_all(engine, ids, initiated_by="bench", waits=True)
    place.settle()

    def follow() -> None:
        for result in refresh_all(engine, ids, initiated_by="bench", waits=True):
            assert not isinstance(result, Failure), result.error
            assert result.action is Action.DIFFERENTIAL, result

    return follow


def _changes(connection: Connection) -> Callable[[int], None]:
    def change(number: int) -> None:
        connection.execute(f"update items set v = v + 1 where id = {number % _ROWS + 1}")

    return change
