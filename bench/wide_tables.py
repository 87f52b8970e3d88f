"""Building the programs of queries over wide tables: how the time grows with the number of columns."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final

from bench.figures import Figure, Grid, at_most
from bench.stage import Stage
from tests.plan.wide import QUERIES, build

WIDTHS: Final = (10, 25, 50, 100, 200)


def wide_tables(stage: Stage) -> list[Figure]:
    """The worst growth from 50 to 200 columns; time of the processor, so that other work does not count."""
    samples: dict[str, list[float]] = {}
    for name in QUERIES:
        build(name, WIDTHS[0])
        for _ in range(stage.sizes.long_rounds):
            for width in WIDTHS:
                samples.setdefault(f"{name}, {width} columns", []).append(_milliseconds(name, width))
    growth = {name: _typical(samples, name, 200) / _typical(samples, name, 50) for name in QUERIES}
    worst = max(growth, key=growth.__getitem__)
    return [
        Figure(
            "programs of a 200-column table ÷ of a 50-column table, the worst of them",
            growth[worst],
            bar=at_most(5),
            note=f"{worst}: {_typical(samples, worst, 200):,.0f} ms",
            samples=samples,
            grids=(_grid(samples),),
        )
    ]


def _milliseconds(name: str, width: int) -> float:
    started = time.thread_time()
    build(name, width)
    return (time.thread_time() - started) * 1000


def _typical(samples: Mapping[str, Sequence[float]], name: str, width: int) -> float:
    return median(samples[f"{name}, {width} columns"])


def _grid(samples: Mapping[str, Sequence[float]]) -> Grid:
    rows = tuple((name, *(f"{_typical(samples, name, width):,.0f}" for width in WIDTHS)) for name in QUERIES)
    return Grid("milliseconds to build all programs", ("query", *(f"{w} columns" for w in WIDTHS)), rows)
