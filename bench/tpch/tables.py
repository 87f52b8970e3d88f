"""The figures of all queries side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bench.figures import Grid
from bench.tpch.board import Board, Subject
from bench.tpch.rounds import Timings
from pgtrickle.model.stream_table import RefreshMode

_STEPS: Final = {
    "before": ("prepare", "claim", "snapshot", "check the ground", "measure the windows", "lock"),
    "read": ("read",),
    "Spark: plan": ("Spark: plan",),
    "Spark: run": ("Spark: run",),
    "apply": ("apply",),
    "record": ("record", "commit"),
    "between": ("between",),
}


def cost_table(boards: Sequence[Board], anew: Timings, viewed: Sequence[Timings]) -> Grid:
    """What each query costs, in milliseconds, and what it is compared with."""
    small, large = boards[0], boards[-1]
    headings = ["query", f"{small.scale:g}: 1 %", "full", "÷ full"]
    for board in boards:
        headings += [f"{board.scale:g}: {word}" for word in ("first load", "rows", "view", "÷ view")]
    rows = []
    for name in large.subjects:
        row = [name, *_compared(anew, name)]
        for board, timings in zip(boards, viewed, strict=True):
            row += [_number(board.loading.get(name)), *_compared(timings, name)]
        first, last = viewed[0].refresh(name), viewed[-1].refresh(name)
        growth = last / first if first is not None and last is not None and len(boards) > 1 else None
        is_followed = large.subjects[name].mode is RefreshMode.DIFFERENTIAL
        read = viewed[-1].read_per_change(name) if is_followed else None
        row += [_number(growth), _number(read)]
        rows.append((*row, _note([each.subjects[name] for each in boards])))
    return Grid("TPC-H, milliseconds", (*headings, "growth", "read ÷ change", "note"), tuple(rows))


def step_table(board: Board, timings: Timings) -> Grid:
    """Where the time of each refresh went."""
    rows = []
    for name in board.subjects:
        steps = timings.steps(name)
        if steps:
            spent = [sum(steps.get(step, 0.0) for step in parts) for parts in _STEPS.values()]
            rows.append((name, *[_number(value) for value in spent]))
    title = f"TPC-H, milliseconds of each step at scale {board.scale:g}"
    return Grid(title, ("query", *_STEPS), tuple(rows))


def index_table(board: Board) -> Grid:
    """The indexes that `explain` asked for, and that were created for everybody."""
    wanted: dict[str, list[str]] = {}
    for subject in board.subjects.values():
        for index in subject.indexes:
            wanted.setdefault(index.removeprefix("create index on "), []).append(subject.name)
    rows = tuple((index, ", ".join(names)) for index, names in sorted(wanted.items()))
    return Grid("TPC-H, indexes that explain asks for", ("index", "asked for by"), rows)


def _note(subjects: Sequence[Subject]) -> str:
    """Why a query has no figures, or is not followed."""
    for subject in subjects:
        if subject.failure:
            return subject.failure
        if subject.mode is not RefreshMode.DIFFERENTIAL:
            return f"{subject.mode.value}: {subject.reason}"
    return ""


def _compared(timings: Timings, name: str) -> list[str]:
    return [_number(timings.refresh(name)), _number(timings.rival(name)), _number(timings.ratio(name))]


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
