"""Follows a change, or loads all rows, by the program of a stream table: in the driver or in tasks."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Final

import pyarrow as pa

from pgtrickle.apply.result_rows import NativeRows, QueriedRows, can_be_queried, carried_columns
from pgtrickle.apply.storage import create_storage
from pgtrickle.changes.keys import LookupKeys
from pgtrickle.changes.memory import TooMuch
from pgtrickle.changes.read import native_changes_query, read_all, read_query
from pgtrickle.model.phases import Phase
from pgtrickle.plan.program import FirstRows, RowsTarget
from pgtrickle.plan.reads import ReadKind
from pgtrickle.postgres.connection import set_locally
from pgtrickle.refresh.decide.reaches import Reach
from pgtrickle.refresh.decide.sizes import spares_spark, whole_rows
from pgtrickle.refresh.execute.apply_result import (
    apply_rows,
    load_first_rows,
    replace_rows,
    rows_of,
)
from pgtrickle.refresh.execute.compute import (
    ProgramRun,
    compute,
    has_rows,
    kept_rows,
    read_all_rows,
    read_inputs,
)
from pgtrickle.refresh.execute.staging import Staging
from pgtrickle.refresh.execute.task_reads import PartialRead
from pgtrickle.refresh.faults import unfollowable_values
from pgtrickle.refresh.outcome import NOTHING, Effect
from pgtrickle.refresh.session import PLANNED_AS_A_WHOLE

PASSED_THROUGH: Final = "; evaluated by PostgreSQL, since Spark runs on one machine and would only pass it on"


def follow(run: ProgramRun, *, is_large: bool) -> Effect:
    """Apply the change of the window to the stream table."""
    if is_large and _is_passed_through(run):
        return _follow_in_place(run)
    if is_large and run.session.can_share:
        with Staging(run) as rows:
            return apply_rows(run, rows, 0)
    result = _compute_change(run)
    if isinstance(result, PartialRead):
        with Staging(run, result) as rows:
            return replace(apply_rows(run, rows, 0), note=_note(result))
    if result is None:
        return NOTHING
    with run.session.phases.measure(Phase.APPLY), rows_of(run, result) as rows:
        return apply_rows(run, rows, result.num_rows)


def load(run: ProgramRun, *, is_large: bool) -> Effect:
    """Make the stream table hold exactly what the program computes from all rows."""
    if isinstance(run.program.target, FirstRows):
        create_storage(run.session.write, run.table.id, run.program.target)
        return load_first_rows(run)
    if is_large and run.session.can_share:
        with Staging(run) as rows:
            return Effect(replace_rows(run, rows), 0)
    result = _compute_everything(run)
    if isinstance(result, PartialRead):
        with Staging(run, result) as rows:
            create_storage(run.session.write, run.table.id, run.program.target)
            return Effect(replace_rows(run, rows), 0, _note(result))
    with run.session.phases.measure(Phase.APPLY):
        create_storage(run.session.write, run.table.id, run.program.target)
        with rows_of(run, result) as rows:
            return Effect(replace_rows(run, rows), result.num_rows)


def recompute_all(run: ProgramRun) -> Effect:
    """Make the stream table and its state hold what PostgreSQL computes from all rows; may raise TooMuch."""
    if isinstance(run.program.target, FirstRows):
        return load_first_rows(run)
    if not run.session.can_share and can_be_queried(carried_columns(run.program.target)):
        return _recompute_in_place(run)
    (read,) = run.program.reads
    with run.session.phases.measure(Phase.COMPUTE), run.session.bounded_reads(), unfollowable_values():
        set_locally(run.session.read, PLANNED_AS_A_WHOLE)
        result = read_all((read,), run.session.read, run.ends, run.holding)[read.name]
    with run.session.phases.measure(Phase.APPLY), rows_of(run, result) as rows:
        return Effect(replace_rows(run, rows), result.num_rows)


def _is_passed_through(run: ProgramRun) -> bool:
    """Whether PostgreSQL can write the change where it reads it: Spark would only hand it on.

    Only the reading connection sees rows that were decoded for this snapshot, or that the clock moves.
    """
    if run.program.passes is None or not spares_spark(run.engine):
        return False
    (read,) = run.program.reads
    is_captured = read.kind is ReadKind.CHANGES and read.source is not None
    return is_captured and not read.follows_clock and not run.ends.decoded


def _follow_in_place(run: ProgramRun) -> Effect:
    """Apply a change that no other row decides about: no row of it leaves PostgreSQL."""
    session, target = run.session, run.program.target
    assert isinstance(target, RowsTarget)
    assert run.program.passes is not None
    (read,) = run.program.reads
    by_name = {field.name: field for field in read.fields}
    pairs = zip(target.fields, run.program.passes, strict=True)
    # a session that shares its snapshot writes on another connection, which sees newer changes too
    ends = replace(run.ends, until=session.frontier if session.can_share else None)
    query = native_changes_query(read, ends, {field.name: by_name[name] for field, name in pairs})
    with unfollowable_values():
        return replace(apply_rows(run, NativeRows(query.as_string(session.write)), 0), note=PASSED_THROUGH)


def _recompute_in_place(run: ProgramRun) -> Effect:
    """The same on a connection that writes in the snapshot it reads: no row leaves PostgreSQL."""
    write = run.session.write
    (read,) = run.program.reads
    query = read_query(read, run.ends, LookupKeys({})).as_string(write)
    set_locally(write, PLANNED_AS_A_WHOLE)
    with run.session.phases.measure(Phase.COMPUTE), unfollowable_values():
        return Effect(replace_rows(run, QueriedRows(query)), 0)


def _compute_change(run: ProgramRun) -> pa.Table | PartialRead | None:
    """Compute the change in the driver; None if there is nothing to compute.

    If the change reaches too many rows, return what was read until then.
    """
    whole = whole_rows(run.engine, run.session, run.program)
    if whole is not None:
        return PartialRead({}, f"about {whole:,} rows")
    reaches = run.engine.reaches
    expected = reaches.expectation(run.table.id, run.program)
    if expected is not None:
        return _read_before(run, expected)
    found: dict[str, pa.Table] = {}
    try:
        with run.session.bounded_reads():
            inputs = read_inputs(run, onto=found)
        result = compute(run, inputs, keeps_plan=True) if has_rows(inputs) else None
    except TooMuch as reason:
        at = next((read.name for read in run.program.reads if read.name not in found), None)
        reaches.note_too_much(run.table.id, run.program, at, str(reason))
        return PartialRead(found, str(reason))
    reaches.note_little(run.table.id, run.program)
    return result


def _read_before(run: ProgramRun, expected: Reach) -> PartialRead:
    """Read what comes before the read at which the program has reached too many rows several times."""
    found: dict[str, pa.Table] = {}
    with (
        run.session.phases.measure(Phase.READ),
        suppress(TooMuch),
        run.session.bounded_reads(),
        unfollowable_values(),
    ):
        read_all(
            expected.before(run.program.reads),
            run.session.read,
            run.ends,
            run.holding,
            whole=kept_rows(run),
            onto=found,
        )
    return PartialRead(found, f"{expected.reason}, like the last {expected.times} that were measured")


def _compute_everything(run: ProgramRun) -> pa.Table | PartialRead:
    """Compute all rows in the driver; if they are too many, return what was read until then."""
    found: dict[str, pa.Table] = {}
    try:
        with run.session.bounded_reads():
            inputs = read_all_rows(run, found)
        return compute(run, inputs, keeps_plan=False)
    except TooMuch as reason:
        return PartialRead(found, str(reason))


def _note(partial: PartialRead) -> str:
    return f"; spread over tasks, since it reaches {partial.reason}"
