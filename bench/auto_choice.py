"""AUTO beside DIFFERENTIAL and FULL: the 22 queries of TPC-H, at several sizes of the change."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Final

from bench.figures import Figure, Grid, at_most
from bench.stage import Place, Stage
from bench.tpch.board import Board, Subject, board, say
from pgtrickle.model.stream_table import StreamTableId
from pgtrickle.refresh.story import refresh

FRACTIONS: Final = (0.0001, 0.001, 0.01, 0.1, 0.5)
LEARNING: Final = 3
"""After this many refreshes of one kind of window, AUTO is expected to choose well."""
WITHIN: Final = 1.25
FIRST_WITHIN: Final = 3.0
HOPELESS: Final = 5.0
"""A differential refresh this many times slower than the full one is not measured again."""
MODES: Final = ("AUTO", "DIFFERENTIAL", "FULL")


@dataclass(slots=True)
class Times:
    """The milliseconds of one query at one fraction, by mode, and what AUTO did."""

    taken: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    reasons: list[str] = field(default_factory=list)

    def better(self, rounds: slice) -> float | None:
        """The better of the two modes that leave no choice."""
        sides = [median(kept) for mode in MODES[1:] if (kept := self.taken[mode][rounds] or self.taken[mode])]
        return min(sides, default=None)

    def learned(self) -> float | None:
        """AUTO ÷ the better mode, after it could learn."""
        return self._ratio(slice(LEARNING, None))

    def first(self) -> float | None:
        """The same for the first refresh."""
        return self._ratio(slice(0, 1))

    def _ratio(self, rounds: slice) -> float | None:
        auto, better = self.taken["AUTO"][rounds], self.better(rounds)
        return median(auto) / better if auto and better else None


def auto_choice(stage: Stage) -> list[Figure]:
    """Each query is three stream tables over the same sources; they are refreshed in turns."""
    sizes = stage.sizes
    figures: list[Figure] = []
    with board(stage, sizes.tpch_scales[0], sizes.tpch_queries) as place:
        tables = _twins(place)
        for fraction in FRACTIONS:
            found = _measure(place, tables, fraction, LEARNING + sizes.auto_rounds)
            figures += _figures(place.scale, fraction, found)
        place.check()
    return figures


def _twins(place: Board) -> dict[str, dict[str, StreamTableId]]:
    """The stream tables of each query, by mode; all loaded."""
    tables: dict[str, dict[str, StreamTableId]] = {}
    for subject in place.alive:
        tables[subject.name] = {"AUTO": subject.table}
        for mode in MODES[1:]:
            name = f"{subject.name}_{mode.lower()}"
            place.place.trickle.create_stream_table(name, subject.query.text, None, mode)
            tables[subject.name][mode] = place.place.id_of(name)
            place.attempt(f"{mode} load", subject, partial(_refresh, place.place, tables[subject.name][mode]))
    return tables


def _measure(
    place: Board, tables: dict[str, dict[str, StreamTableId]], fraction: float, rounds: int
) -> dict[str, Times]:
    found: dict[str, Times] = defaultdict(Times)
    rows = max(1, round(place.changes.size * fraction))
    for subject in place.alive:
        # what was too slow to be measured before has to catch up
        place.attempt(
            "catch up", subject, partial(_refresh, place.place, tables[subject.name]["DIFFERENTIAL"])
        )
    for number in range(rounds):
        place.changes.make(rows)
        for subject in place.alive:
            _round(place, subject, tables[subject.name], found[subject.name], number)
    return found


def _round(
    place: Board, subject: Subject, tables: dict[str, StreamTableId], times: Times, number: int
) -> None:
    for mode in MODES[number % 3 :] + MODES[: number % 3]:
        if mode == "DIFFERENTIAL" and _is_hopeless(times):
            continue
        took = place.attempt(mode, subject, partial(_refresh, place.place, tables[mode]))
        if took is not None:
            times.taken[mode].append(took)
        if mode == "AUTO" and took is not None:
            times.reasons.append(_reason(place.place, tables[mode]))
            say(f"    {times.reasons[-1]}")


def _is_hopeless(times: Times) -> bool:
    slow, fast = times.taken["DIFFERENTIAL"], times.taken["FULL"]
    return bool(slow and fast) and min(slow) > HOPELESS * max(fast)


def _refresh(place: Place, table: StreamTableId) -> None:
    refresh(place.trickle.engine, table, initiated_by="bench", waits=True)


def _reason(place: Place, table: StreamTableId) -> str:
    row = place.connection.execute(
        "select action || ': ' || reason from pgtrickle.pgt_refresh_history where pgt_id = %s"
        " order by refresh_id desc limit 1",
        (table,),
    ).fetchone()
    return str(row[0]) if row else ""


def _figures(scale: float, fraction: float, found: dict[str, Times]) -> list[Figure]:
    changed = f"TPC-H {scale:g}, {100 * fraction:g} % changed"
    rows = []
    for name, times in found.items():
        typical = [median(times.taken[mode][LEARNING:] or times.taken[mode] or [0]) for mode in MODES]
        learned, first = times.learned(), times.first()
        shown = [f"{value:,.0f}" for value in typical]
        rows.append(
            (name, *shown, _shown(learned), _shown(first), times.reasons[-1] if times.reasons else "")
        )
    grid = Grid(
        f"{changed}, milliseconds", ("query", *MODES, "÷ better", "first", "last reason"), tuple(rows)
    )
    learned_all = {name: ratio for name, t in found.items() if (ratio := t.learned()) is not None}
    first_all = {name: ratio for name, t in found.items() if (ratio := t.first()) is not None}
    return [
        _worst(f"{changed}: AUTO ÷ the better mode, the worst query", learned_all, WITHIN, (grid,)),
        _worst(
            f"{changed}: the first refresh ÷ the better mode, the worst query", first_all, FIRST_WITHIN, ()
        ),
    ]


def _worst(what: str, ratios: dict[str, float], limit: float, grids: tuple[Grid, ...]) -> Figure:
    beyond = [f"{name} {ratio:.2f}" for name, ratio in ratios.items() if ratio > limit]
    note = f"{len(ratios) - len(beyond)} of {len(ratios)} within" + (
        f"; not: {', '.join(beyond)}" if beyond else ""
    )
    worst = max(ratios.values(), default=None)
    return Figure(what, worst, "×", at_most(limit), note, grids=grids)


def _shown(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:.2f}"
