"""Computes the changes of several stream tables of one wave; the window of each source is read once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import pyarrow as pa

from pgtrickle.changes.memory import Holding, TooMuch
from pgtrickle.changes.relations import Ends
from pgtrickle.changes.shared_windows import can_be_shared, read_together
from pgtrickle.changes.source_window import Start
from pgtrickle.model.errors import SparkFailed
from pgtrickle.model.phases import Phase
from pgtrickle.pipeline.small import run_small_together
from pgtrickle.plan.reads import Read
from pgtrickle.refresh.execute.compute import ProgramRun, has_rows, read_inputs
from pgtrickle.refresh.faults import BLAMED, Blamed, Unfollowable, unfollowable_values
from pgtrickle.refresh.session import Settings

_Inputs = dict[str, pa.Table]


def compute_side_by_side(
    runs: Sequence[ProgramRun], holding: Holding
) -> list[pa.Table | Blamed | TooMuch | None]:
    """For each run the rows that Spark returns, None if there was nothing to compute, or its error.

    A run that raises TooMuch shares the memory with the others, and has to be tried by itself.
    """
    if not runs:
        return []
    with runs[0].session.phases.measure(Phase.READ):
        inputs = _read_all_inputs(runs, holding)
    results: list[pa.Table | Blamed | TooMuch | None] = [
        given if isinstance(given, Exception) else None for given in inputs
    ]
    going = [n for n, given in enumerate(inputs) if isinstance(given, dict) and has_rows(given)]
    if not going:
        return results
    programs = [(runs[n].program.spark_sql, given) for n in going if isinstance(given := inputs[n], dict)]
    with (
        runs[0].session.phases.measure(Phase.COMPUTE),
        runs[0].engine.computing(*(runs[n].table.id for n in going)) as spark,
    ):
        found = run_small_together(spark, programs, holding.left // len(going))
    for number, result in zip(going, found, strict=True):
        results[number] = _classify(result)
    return results


def _classify(result: pa.Table | SparkFailed | TooMuch) -> pa.Table | Blamed | TooMuch:
    """The result, with an error about values as `Unfollowable`."""
    try:
        with unfollowable_values():
            if isinstance(result, SparkFailed):
                raise result
    except (Unfollowable, SparkFailed) as blamed:
        return blamed
    return result


def _read_all_inputs(runs: Sequence[ProgramRun], holding: Holding) -> list[_Inputs | Blamed | TooMuch]:
    """The inputs of each program; if reading for all of them fails, each reads by itself."""
    if len(runs) > 1:
        session = runs[0].session
        try:
            with session.savepoint():
                shared = _read_shared_windows(runs, holding)
                return [_read_inputs(run, part) for run, part in zip(runs, shared, strict=True)]
        except (*BLAMED, TooMuch):
            # one of them is at fault: the reads below find out which
            holding.release()
    return [_try_inputs(run) for run in runs]


def _try_inputs(run: ProgramRun) -> _Inputs | Blamed | TooMuch:
    try:
        with run.session.savepoint():
            return _read_inputs(run, {})
    except (*BLAMED, TooMuch) as blamed:
        return blamed


def _read_inputs(run: ProgramRun, shared: Mapping[str, pa.Table]) -> _Inputs:
    run.session.enter(run.table.settings)
    return read_inputs(run, shared)


def _read_shared_windows(runs: Sequence[ProgramRun], holding: Holding) -> list[dict[str, pa.Table]]:
    """The windows that several programs read, for each program by the names of its reads.

    Two tables can share a window only if they have the same settings: expressions depend on them.
    """
    readers: dict[tuple[Settings, Start], list[tuple[int, Read, Ends]]] = defaultdict(list)
    for number, run in enumerate(runs):
        ends = run.ends
        for read in run.program.reads:
            if can_be_shared(read) and read.source is not None:
                start = (read.source.relation, ends.frontier(read.source))
                readers[run.table.settings, start].append((number, read, ends))
    session = runs[0].session
    found: list[dict[str, pa.Table]] = [{} for _ in runs]
    for (settings, _), parts in readers.items():
        if len(parts) > 1:
            session.enter(settings)
            with unfollowable_values():
                tables = read_together(session.read, [(read, ends) for _, read, ends in parts], holding)
            for (number, read, _), table in zip(parts, tables, strict=True):
                found[number][read.name] = table
    return found
