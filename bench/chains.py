"""Small stream tables over one another: from a changed row to the commit of the last of them."""

from __future__ import annotations

from statistics import median

from bench.figures import Figure, at_most
from bench.layers import Together, chain, diamond, levels, made, make_sources
from bench.stage import Place, Stage
from bench.timing import milliseconds, percentile, phased, typical

WARMING = 5
DEEP = 3
SOURCES = ("first", "second", "third", "fourth")


def chains(stage: Stage) -> list[Figure]:
    """A chain, three levels of many tables, and a diamond; each has a database of its own."""
    long, wide = stage.sizes.chain, stage.sizes.wide
    return [
        _chain(stage, f"chain of {long} stream tables, one changed row to the last commit"),
        _levels(stage, f"{DEEP} levels × {wide} stream tables, all touched"),
        _diamond(stage, "diamond of 4 arms and their top"),
    ]


def _chain(stage: Stage, what: str) -> Figure:
    with stage.database("chain") as place:
        make_sources(place.connection, SOURCES[:1])
        group = made(place, chain("link", SOURCES[0], stage.sizes.chain), SOURCES[0])
        return _measured(place, group, stage.sizes.chain_rounds, what, limit=820, goal=400)


def _levels(stage: Stage, what: str) -> Figure:
    with stage.database("levels") as place:
        make_sources(place.connection, SOURCES)
        group = made(place, levels("level", SOURCES, DEEP, stage.sizes.wide), *SOURCES)
        return _measured(place, group, stage.sizes.chain_rounds, what, limit=2400, goal=1200)


def _diamond(stage: Stage, what: str) -> Figure:
    with stage.database("diamond") as place:
        make_sources(place.connection, SOURCES[:1])
        group = made(place, diamond("facet", SOURCES[0]), SOURCES[0])
        return _measured(place, group, stage.sizes.chain_rounds, what, limit=200, goal=150)


def _measured(place: Place, group: Together, rounds: int, what: str, *, limit: int, goal: int) -> Figure:
    took, phases = [], []
    place.settle()
    for number in range(WARMING + rounds):
        group.change()
        with phased() as steps:
            spent = milliseconds(group.refresh)
        if number >= WARMING:
            took.append(spent)
            phases.append(steps)
    place.trickle.verify()
    note = f"goal {goal} ms; 95 % below {percentile(took, 95):.4g} ms; {len(group.ids)} stream tables"
    details = {f"milliseconds of each step, {what}": typical(phases)}
    return Figure(what, median(took), "ms", at_most(limit), note, {"milliseconds": took}, details)
