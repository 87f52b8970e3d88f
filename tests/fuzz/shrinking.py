"""Making a failure small: fewer windows, tables, statements and rows, a simpler query, in limited time."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

from tests.fuzz.batches import Window
from tests.fuzz.playing import Failure, Play
from tests.fuzz.rounds import Round
from tests.fuzz.simplifying import simpler

T = TypeVar("T")
Player = Callable[[Round], list[Play]]
"""Plays all queries of a round."""

TOGETHER = 6
"""How many simpler queries are played together: they share the tables and the windows."""


@dataclass(slots=True)
class Shrinking:
    """The smallest round with one query that is known to fail in the same way."""

    play: Player
    smallest: Round
    failure: Failure
    deadline: float

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self.deadline

    def fails(self, candidate: Round) -> bool:
        """Whether one query of the candidate fails in the same way; then it is the smallest."""
        plays = self.play(candidate)
        failures = [one.failure for one in plays if one.failure and one.failure.kind == self.failure.kind]
        if not failures:
            return False
        self.failure = min(failures, key=lambda failure: len(failure.query))
        windows = candidate.windows[: self.failure.windows]
        self.smallest = replace(candidate, queries=(self.failure.query,), windows=windows)
        return True


def shrunk(play: Player, drawn: Round, failure: Failure, *, seconds: float) -> tuple[Round, Failure]:
    """A smaller round that fails in the same way, and how it fails."""
    first = replace(drawn, queries=(failure.query,), windows=drawn.windows[: failure.windows])
    shrinking = Shrinking(play, first, failure, time.monotonic() + seconds)
    if not shrinking.fails(_with_tables_of(first)) and not shrinking.fails(first):
        # it needed the other queries of its round
        return drawn, failure
    passes: tuple[Callable[[Shrinking], bool], ...] = (_windows, _query, _steps, _tables, _rows)
    progress = True
    while progress and not shrinking.is_over:
        progress = False
        for one in passes:
            progress |= one(shrinking)
    return shrinking.smallest, shrinking.failure


def _query(shrinking: Shrinking) -> bool:
    """Replace the query by simpler ones as long as one of them fails."""
    progress = False
    while not shrinking.is_over and _simpler_query(shrinking):
        progress = True
    return progress


def _simpler_query(shrinking: Shrinking) -> bool:
    candidates = simpler(shrinking.smallest.queries[0])
    while together := tuple(islice(candidates, TOGETHER)):
        if shrinking.is_over:
            return False
        if shrinking.fails(replace(shrinking.smallest, queries=together)):
            return True
    return False


def _windows(shrinking: Shrinking) -> bool:
    return _reduced(
        shrinking,
        lambda: shrinking.smallest.windows,
        lambda windows: replace(shrinking.smallest, windows=tuple(windows)),
    )


def _steps(shrinking: Shrinking) -> bool:
    """Leave out statements, whichever window they stand in."""

    def numbered() -> Sequence[tuple[int, int]]:
        windows = shrinking.smallest.windows
        return [(w, s) for w, window in enumerate(windows) for s in range(len(window))]

    def keeping(kept: Sequence[tuple[int, int]]) -> Round:
        windows = [
            tuple(step for s, step in enumerate(window) if (w, s) in kept)
            for w, window in enumerate(shrinking.smallest.windows)
        ]
        return replace(shrinking.smallest, windows=tuple[Window, ...](windows))

    return _reduced(shrinking, numbered, keeping)


def _rows(shrinking: Shrinking) -> bool:
    def rows() -> Sequence[tuple[str, int]]:
        held = shrinking.smallest.rows
        return [(table, number) for table, found in held.items() for number in range(len(found))]

    def keeping(kept: Sequence[tuple[str, int]]) -> Round:
        held = {
            table: tuple(row for number, row in enumerate(found) if (table, number) in kept)
            for table, found in shrinking.smallest.rows.items()
        }
        return replace(shrinking.smallest, rows=held)

    return _reduced(shrinking, rows, keeping)


def _tables(shrinking: Shrinking) -> bool:
    fewer = _with_tables_of(shrinking.smallest)
    return len(fewer.tables) < len(shrinking.smallest.tables) and shrinking.fails(fewer)


def _with_tables_of(drawn: Round) -> Round:
    """The round with only those tables that its query reads, and what is done to them."""
    query = drawn.queries[0]
    tables = tuple(table for table in drawn.tables if re.search(rf"\b{table.name}\b", query))
    gone = [table.name for table in drawn.tables if table not in tables]
    windows = [
        tuple(step for step in window if not any(re.search(rf"\b{name}\b", step.sql) for name in gone))
        for window in drawn.windows
    ]
    rows = {table.name: drawn.rows[table.name] for table in tables}
    return replace(drawn, tables=tables, rows=rows, windows=tuple[Window, ...](windows))


def _reduced(
    shrinking: Shrinking, items: Callable[[], Sequence[T]], keeping: Callable[[Sequence[T]], Round]
) -> bool:
    """Leave out halves, quarters, … and single items as long as the rest fails."""
    progress = False
    size = len(items())
    while size >= 1:
        start = 0
        while start < len(items()) and not shrinking.is_over:
            kept = [item for number, item in enumerate(items()) if not start <= number < start + size]
            if shrinking.fails(keeping(kept)):
                progress = True
            else:
                start += size
        size //= 2
    return progress


def script(drawn: Round, failure: Failure) -> Iterator[str]:
    """The failure as a story that PostgreSQL can be told."""
    for statement in drawn.arrangement:
        yield f"{statement};"
    yield f"select pgtrickle.create_stream_table('stream', $${failure.query}$$);"
    for number, window in enumerate(drawn.windows, start=1):
        yield f"-- window {number}"
        yield from (str(step) for step in window)
        yield "select pgtrickle.refresh_stream_table('stream');"
    yield f"-- {failure.kind}"
    yield failure.details if failure.details.startswith("--") else f"-- {failure.details}"
