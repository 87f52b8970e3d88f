"""Rounds of changes, each followed by refreshes and what they are measured against, in turns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Final

from bench.timing import Phases, phased, typical
from bench.tpch.board import Board, Subject
from bench.tpch.watching import Seen, watched

WARMING: Final = 3

Rival = Callable[[Board, Subject], None]


@dataclass(slots=True)
class Timings:
    """All samples of one board, by the name of the query."""

    refreshes: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    rivals: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    phases: dict[str, list[Phases]] = field(default_factory=lambda: defaultdict(list))
    seen: dict[str, list[Seen]] = field(default_factory=lambda: defaultdict(list))

    def refresh(self, name: str) -> float | None:
        return _median(self.refreshes, name)

    def rival(self, name: str) -> float | None:
        return _median(self.rivals, name)

    def ratio(self, name: str) -> float | None:
        """The refresh ÷ its rival."""
        above, below = self.refresh(name), self.rival(name)
        return None if above is None or below is None else above / below

    def read_per_change(self, name: str) -> float | None:
        """Rows read from PostgreSQL ÷ change rows in the window."""
        rounds = [seen.read / seen.changed for seen in self.seen.get(name, []) if seen.changed]
        return median(rounds) if rounds else None

    def steps(self, name: str) -> Phases:
        return typical(self.phases[name]) if self.phases.get(name) else {}


def run(boards: Sequence[Board], rows: Sequence[int], rival: Rival, rounds: int) -> list[Timings]:
    """Change that many rows on each board and refresh everything, query by query on all boards.

    The first rounds warm up and are not counted: a plan is kept when a program runs for the second time.
    """
    found = [Timings() for _ in boards]
    names = list(dict.fromkeys(name for board in boards for name in board.subjects))
    for number in range(-WARMING, rounds):
        for board, count in zip(boards, rows, strict=True):
            board.changes.make(count)
        pairs = list(zip(boards, found, strict=True))
        for name in names:
            for board, timings in pairs if number % 2 else reversed(pairs):
                kept = timings if number >= 0 else Timings()
                _measure(board, board.subjects[name], rival, kept, rival_first=bool(number % 2))
    return found


def _measure(board: Board, subject: Subject, rival: Rival, timings: Timings, *, rival_first: bool) -> None:
    sides = [partial(_refresh, board, subject, timings), partial(_rival, board, subject, rival, timings)]
    for side in reversed(sides) if rival_first else sides:
        side()


def _refresh(board: Board, subject: Subject, timings: Timings) -> None:
    with phased() as steps, watched() as seen:
        took = board.attempt("refresh", subject, partial(board.follow, subject))
    if took is not None:
        timings.refreshes[subject.name].append(took)
        timings.phases[subject.name].append(dict(steps))
        timings.seen[subject.name].append(seen)


def _rival(board: Board, subject: Subject, rival: Rival, timings: Timings) -> None:
    took = board.attempt("rival", subject, partial(rival, board, subject))
    if took is not None:
        timings.rivals[subject.name].append(took)


def _median(samples: dict[str, list[float]], name: str) -> float | None:
    return median(samples[name]) if samples.get(name) else None
