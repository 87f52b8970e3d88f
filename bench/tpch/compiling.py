"""How long the largest queries take to compile, and to find again."""

from __future__ import annotations

from statistics import median
from typing import Final

from bench.figures import Figure, at_most
from bench.timing import milliseconds
from bench.tpch.board import Board, Subject
from pgtrickle.catalog.tables import stream_table
from pgtrickle.model.stream_table import RefreshMode
from pgtrickle.refresh.compilation import compile_table

LARGEST: Final = ("q02", "q20", "q21")
COLD, RECALLED, CACHED = "cold", "from the catalog", "from cache"


def compile_times(board: Board, rounds: int) -> list[Figure]:
    """The slowest of the largest queries; that PostgreSQL helps to analyse them is included."""
    samples: dict[str, list[float]] = {}
    for name in LARGEST:
        subject = board.subjects.get(name)
        if subject is None or subject.mode is not RefreshMode.DIFFERENTIAL:
            continue
        for kind, took in _times(board, subject, rounds):
            samples.setdefault(f"{name} {kind}", []).append(took)
    return [_slowest(samples, COLD, 1000), _slowest(samples, RECALLED, 100), _slowest(samples, CACHED, 1)]


def _times(board: Board, subject: Subject, rounds: int) -> list[tuple[str, float]]:
    """Each time from the catalog's row to the program for a window in which every source has changed."""
    engine, found = board.place.trickle.engine, []
    with engine.connection() as connection:
        table = stream_table(connection, subject.table)

        def compile_it() -> None:
            compiled = compile_table(connection, table).compiled
            assert compiled is not None
            compiled.program(compiled.sources)

        def recall_it() -> None:
            compiled = engine.compilation(connection, table).compiled
            assert compiled is not None
            compiled.program(compiled.sources)

        for _ in range(rounds):
            found.append((COLD, milliseconds(compile_it)))
            engine.forget(subject.table)
            found += [(kind, milliseconds(recall_it)) for kind in (RECALLED, CACHED)]
    return found


def _slowest(samples: dict[str, list[float]], kind: str, limit: float) -> Figure:
    chosen = {name: side for name, side in samples.items() if name.endswith(kind)}
    what = f"TPC-H: compiling the slowest of {', '.join(LARGEST)}, {kind}"
    if not chosen:
        return Figure(what, None, "ms", at_most(limit), note="none of them is followed differentially")
    medians = {name: median(side) for name, side in chosen.items()}
    note = ", ".join(f"{name} {value:,.4g} ms" for name, value in medians.items())
    return Figure(what, max(medians.values()), "ms", at_most(limit), note=note, samples=chosen)
