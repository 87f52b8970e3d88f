"""Applies the rows that Spark computed to the stream table of a run."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from itertools import chain, groupby

import pyarrow as pa

from pgtrickle.apply.apply import apply_changes, fill_first_rows, replace_all
from pgtrickle.apply.destination import Destination
from pgtrickle.apply.merge import groups_to_rescan, may_rescan
from pgtrickle.apply.recording import MovedRows
from pgtrickle.apply.result_rows import Rows, carried_columns, carried_fields
from pgtrickle.apply.small_change import SmallChange, small_change, write_small_changes
from pgtrickle.apply.temporary_rows import MANY_ROWS, as_relation, copy_onto, few_rows, temporary_table
from pgtrickle.apply.write import Applied
from pgtrickle.changes.memory import Memory
from pgtrickle.changes.read import read_all
from pgtrickle.model.auxiliary import moved_table
from pgtrickle.model.errors import Diverged
from pgtrickle.model.phases import Phase, PhaseTimes
from pgtrickle.plan.program import MergedGroups, Program
from pgtrickle.plan.reads import Read, Version
from pgtrickle.plan.targets.merged import RESCANNED
from pgtrickle.refresh.execute.compute import ProgramRun
from pgtrickle.refresh.execute.feed import open_recording
from pgtrickle.refresh.faults import Unfollowable
from pgtrickle.refresh.outcome import Effect


def rows_of(run: ProgramRun, result: pa.Table) -> AbstractContextManager[Rows]:
    """The rows that Spark returned to the driver, as a statement can read them."""
    columns = carried_columns(run.program.target)
    return as_relation(run.session.write, f"rows_{run.table.id}", columns, result)


def apply_with_others(changes: Sequence[tuple[ProgramRun, pa.Table]]) -> list[tuple[Effect, PhaseTimes]]:
    """Apply changes of one session, and say how long each took.

    Those that take only one statement are written in one round trip, and their time is divided equally.
    """
    effects: dict[int, tuple[Effect, PhaseTimes]] = {}
    small = {
        number: change
        for number, (run, result) in enumerate(changes)
        if (change := _small_change(run, result)) is not None
    }
    phases = changes[0][0].session.phases
    with phases.measure(Phase.APPLY):
        written = _write_by_settings([(changes[number][0], change) for number, change in small.items()])
    share = phases.take() / max(1, len(small))
    for number, applied in zip(small, written, strict=True):
        effects[number] = _effect(applied, changes[number][1]), share
    for number, (run, result) in enumerate(changes):
        if number not in effects:
            run.session.enter(run.table.settings)
            effects[number] = _apply_by_itself(run, result), phases.take()
    return [effects[number] for number in range(len(changes))]


def _small_change(run: ProgramRun, result: pa.Table) -> SmallChange | None:
    """A change that one statement writes; None if it needs more, such as another look at its groups."""
    rows, target = few_rows(result), run.program.target
    if rows is None or (isinstance(target, MergedGroups) and may_rescan(target, rows)):
        return None
    return small_change(destination(run), rows)


def _write_by_settings(changes: Sequence[tuple[ProgramRun, SmallChange]]) -> list[Applied]:
    """Write small changes together as far as their tables have the same settings."""
    written = []
    for settings, group in groupby(changes, key=lambda pair: pair[0].table.settings):
        members = list(group)
        run = members[0][0]
        run.session.enter(settings)
        # if one of several fails, the caller tries them one by one
        with _several_right_answers(run.program):
            written += write_small_changes(run.session.write, [change for _, change in members])
    return written


def _apply_by_itself(run: ProgramRun, result: pa.Table) -> Effect:
    with (
        run.session.phases.measure(Phase.APPLY),
        rows_of(run, result) as rows,
        _rescanned_groups(run, rows) as rescanned,
        _several_right_answers(run.program),
    ):
        applied = apply_changes(run.session.write, destination(run), rows, rescanned)
    return _effect(applied, result)


def _effect(applied: Applied, result: pa.Table) -> Effect:
    return Effect(applied, result.num_rows or applied.inserted + applied.deleted)


def apply_rows(run: ProgramRun, rows: Rows, count: int) -> Effect:
    """Apply a change; without a `count` of the rows that Spark returned, the written rows are counted."""
    with (
        run.session.phases.measure(Phase.APPLY),
        _rescanned_groups(run, rows) as rescanned,
        _several_right_answers(run.program),
    ):
        applied = apply_changes(run.session.write, destination(run), rows, rescanned)
    return Effect(applied, count or applied.inserted + applied.deleted)


def replace_rows(run: ProgramRun, rows: Rows) -> Applied:
    """Make these rows the whole content of the stream table and its state."""
    with run.session.phases.measure(Phase.APPLY):
        whole = destination(run)
        if isinstance(whole.recording, MovedRows):
            # what reads it is loaded too
            whole = replace(whole, recording=None)
        return replace_all(run.session.write, whole, rows)


def load_first_rows(run: ProgramRun) -> Effect:
    """Load an ordered result, which PostgreSQL evaluates."""
    with run.session.phases.measure(Phase.COMPUTE):
        return Effect(fill_first_rows(run.session.write, destination(run)), 0)


def destination(run: ProgramRun) -> Destination:
    """Where the rows of a run go."""
    table = run.table
    is_auxiliary = table.id < 0
    recording = MovedRows(moved_table(table.id)) if is_auxiliary else open_recording(run.session, table)
    return Destination(
        table.name, table.match_columns, table.id, run.program.target, table.is_append_only, recording
    )


@contextmanager
def _several_right_answers(program: Program) -> Iterator[None]:
    """Tell a query that PostgreSQL answers differently each time from a table that somebody changed."""
    try:
        yield
    except Diverged as error:
        if any(read.version is not Version.NOW for read in program.reads):
            raise Unfollowable(
                "the query has several right answers, and PostgreSQL gave another one"
            ) from error
        raise


@contextmanager
def _rescanned_groups(run: ProgramRun, rows: Rows) -> Iterator[Rows | None]:
    """The groups that lost their extremum, which PostgreSQL scans in the same snapshot."""
    target, write, name = run.program.target, run.session.write, f"extrema_{run.table.id}"
    if not isinstance(target, MergedGroups) or target.rescan is None:
        yield None
        return
    columns = carried_fields(target.rescan.fields)
    rescan = target.rescan
    portions = groups_to_rescan(write, run.table.id, target, rows, MANY_ROWS)
    extrema = (_read_extrema(run, rescan, groups) for groups in portions)
    with ExitStack() as stack:
        found = None
        first, second = next(extrema, None), next(extrema, None)
        if first is not None and second is None:
            found = stack.enter_context(as_relation(write, name, columns, first))
        elif first is not None and second is not None:
            found = stack.enter_context(temporary_table(write, name, columns))
            for part in chain((first, second), extrema):
                copy_onto(write, found, columns, part)
        yield found


def _read_extrema(run: ProgramRun, rescan: Read, groups: pa.Table) -> pa.Table:
    # one row for each group, and the groups come in portions
    holding = Memory(lambda: sys.maxsize).holding()
    with run.session.phases.measure(Phase.READ):
        return read_all((rescan,), run.session.read, run.ends, holding, given={RESCANNED: groups})["extrema"]
