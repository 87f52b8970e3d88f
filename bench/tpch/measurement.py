"""The 22 queries of TPC-H: followed, against computed anew by us and by PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from statistics import median
from typing import Final

from bench.figures import Bar, Figure, Samples, at_least, at_most
from bench.stage import Stage
from bench.tpch.board import Board, board
from bench.tpch.compiling import compile_times
from bench.tpch.rounds import Timings, run
from bench.tpch.tables import cost_table, index_table, step_table
from pgtrickle.model.stream_table import RefreshMode

FRACTION: Final = 0.01
COMPILES: Final = 5


def tpch(stage: Stage) -> list[Figure]:
    """All boards stand at the same time, so that a query is measured on each of them within seconds."""
    sizes = stage.sizes
    with ExitStack() as stack:
        boards = [stack.enter_context(board(stage, s, sizes.tpch_queries)) for s in sizes.tpch_scales]
        small, large = boards[0], boards[-1]
        compiled = compile_times(small, COMPILES)
        small.create_twins()
        share = round(small.changes.size * FRACTION)
        (anew,) = run([small], [share], Board.recompute, sizes.tpch_rounds)
        small.drop_twins()
        for each in boards:
            each.create_views()
        viewed = run(boards, [sizes.changes] * len(boards), Board.refresh_view, sizes.tpch_rounds)
        for each in boards:
            each.check()
    names = sizes.tpch_queries
    figures = [
        _wins(
            f"TPC-H {small.scale:g}, 1 % changed: queries that cost no more than our full refresh",
            small,
            anew,
            at_least(len(names)),
            1.0,
        ),
        _wins(
            f"TPC-H {large.scale:g}, {sizes.changes:,} rows changed: queries faster than PostgreSQL's view",
            large,
            viewed[-1],
            at_least(min(18, len(names))),
            1.0,
        ),
        *_growth(boards, viewed, sizes.changes),
        *compiled,
    ]
    grids = (cost_table(boards, anew, viewed), step_table(large, viewed[-1]), index_table(large))
    followed = [s.name for s in large.alive if s.mode is RefreshMode.DIFFERENTIAL]
    read = _middle([viewed[-1].read_per_change(name) for name in followed])
    told = Figure("TPC-H: rows read ÷ rows in the change, median of the queries", read, grids=grids)
    return [*figures, told]


def _wins(what: str, board: Board, timings: Timings, bar: Bar, limit: float) -> Figure:
    """How many queries are followed differentially, right to the end, and within the limit."""
    ratios = {s.name: timings.ratio(s.name) for s in board.alive if s.mode is RefreshMode.DIFFERENTIAL}
    won = [name for name, ratio in ratios.items() if ratio is not None and ratio <= limit]
    lost = [name for name in board.subjects if name not in won]
    note = f"not: {', '.join(lost)}" if lost else ""
    return Figure(what, len(won), f"of {len(board.subjects)}", bar, note, _samples(timings))


def _growth(boards: Sequence[Board], found: Sequence[Timings], changes: int) -> list[Figure]:
    if len(boards) < 2:
        return []
    small, large = boards[0], boards[-1]
    ratios = []
    for name in small.subjects:
        above, below = found[-1].refresh(name), found[0].refresh(name)
        is_followed = small.subjects[name].mode is RefreshMode.DIFFERENTIAL
        if above is not None and below is not None and is_followed:
            ratios.append(above / below)
    scales = f"scale {large.scale:g} ÷ scale {small.scale:g}"
    what = f"TPC-H, {changes:,} rows changed: {scales}, median of the queries"
    return [Figure(what, _middle(ratios), "×", at_most(1.5))]


def _middle(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _samples(timings: Timings) -> Samples:
    refreshes = {f"{name} refresh": side for name, side in timings.refreshes.items()}
    return {**refreshes, **{f"{name} rival": side for name, side in timings.rivals.items()}}
