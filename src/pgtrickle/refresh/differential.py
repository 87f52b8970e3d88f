"""Following a change: read the window and what it touches, compute its effect, apply it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import chain
from types import MappingProxyType

import pyarrow as pa

from pgtrickle.apply.applying import apply_changes, apply_opened, fill_first_rows, replace_all
from pgtrickle.apply.copying import MANY_ROWS, as_relation, copy_onto, temporary
from pgtrickle.apply.merging import groups_to_rescan
from pgtrickle.apply.rows import Rows, carried_columns, of_fields
from pgtrickle.apply.storage import create_storage
from pgtrickle.apply.writing import Applied
from pgtrickle.changes.inputs import merged
from pgtrickle.changes.kept import Ask
from pgtrickle.changes.memory import Holding, Memory, TooMuch
from pgtrickle.changes.reading import Whole, read_all
from pgtrickle.model.errors import Diverged
from pgtrickle.model.settings import SparkPath
from pgtrickle.model.stream_table import StreamTable
from pgtrickle.pipeline.small import run_small
from pgtrickle.plan.program import FirstRows, MergedGroups, Program
from pgtrickle.plan.reads import Read, Version
from pgtrickle.plan.targets.merged import RESCANNED
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.reaches import Reach
from pgtrickle.refresh.reaching import Reached
from pgtrickle.refresh.session import Session
from pgtrickle.refresh.sizes import whole_rows
from pgtrickle.refresh.staging import Staging
from pgtrickle.refresh.unfollowable import Unfollowable, followable
from pgtrickle.refresh.windows import ends_of


@dataclass(frozen=True, slots=True)
class Effect:
    """What an application did, how many rows came from Spark, and what to say about how they came."""

    applied: Applied
    delta_rows: int
    note: str = ""


NOTHING = Effect(Applied(0, 0), 0)


def follow(
    engine: Engine, session: Session, table: StreamTable, program: Program, *, is_large: bool
) -> Effect:
    """Apply the change of the window to the stream table."""
    with engine.memory.holding(max_rows=_max_rows(engine, session)) as holding:
        if is_large and session.can_share:
            with Staging(engine, session, table, program, holding) as rows:
                return _applied(session, table, program, rows, 0)
        result = _result(engine, session, table, program, holding)
        if isinstance(result, Reached):
            with Staging(engine, session, table, program, holding, result) as rows:
                return replace(_applied(session, table, program, rows, 0), note=_note(result))
        if result is None:
            return NOTHING
        with _as_rows(session, table, program, result) as rows:
            return _applied(session, table, program, rows, result.num_rows)


def fill(engine: Engine, session: Session, table: StreamTable, program: Program, *, is_large: bool) -> Effect:
    """Let the stream table hold exactly what the program computes of all rows."""
    target = program.target
    if isinstance(target, FirstRows):
        create_storage(session.write, table.id, target)
        return Effect(fill_first_rows(session.write, table.name, table.match_columns, table.id, target), 0)
    with engine.memory.holding(max_rows=_max_rows(engine, session)) as holding:
        if is_large and session.can_share:
            with Staging(engine, session, table, program, holding) as rows:
                return Effect(_replaced(session, table, program, rows), 0)
        result = _loaded(engine, session, table, program, holding)
        if isinstance(result, Reached):
            with Staging(engine, session, table, program, holding, result) as rows:
                create_storage(session.write, table.id, target)
                return Effect(_replaced(session, table, program, rows), 0, _note(result))
        create_storage(session.write, table.id, target)
        with _as_rows(session, table, program, result) as rows:
            return Effect(_replaced(session, table, program, rows), result.num_rows)


def _max_rows(engine: Engine, session: Session) -> int | None:
    """From how many rows on tasks are faster: only where they can read what we read."""
    return engine.large_reach if session.can_share and engine.path is SparkPath.AUTO else None


def _result(
    engine: Engine, session: Session, table: StreamTable, program: Program, holding: Holding
) -> pa.Table | Reached | None:
    """What Spark computes of the window; None if there is nothing, or how far we came if it is too much."""
    found: dict[str, pa.Table] = {}
    whole = whole_rows(engine, session, program)
    if whole is not None:
        return Reached(found, f"about {whole:,} rows")
    expected = engine.reaches.expected(table.id, program)
    if expected is not None:
        return _reached_again(engine, session, table, program, holding, expected)
    try:
        with session.bounded():
            inputs = gathered(engine, session, table, program, holding, onto=found)
        result = _computed(engine, table, program, inputs, holding) if has_rows(inputs) else None
    except TooMuch as reason:
        at = next((read.name for read in program.reads if read.name not in found), None)
        engine.reaches.note_too_much(table.id, program, at, str(reason))
        return Reached(found, str(reason))
    engine.reaches.note_little(table.id, program)
    return result


def _reached_again(
    engine: Engine, session: Session, table: StreamTable, program: Program, holding: Holding, expected: Reach
) -> Reached:
    """Of a program that has reached too much again and again, the driver reads what comes before that."""
    found: dict[str, pa.Table] = {}
    with suppress(TooMuch), session.bounded(), followable():
        read_all(
            expected.before(program.reads),
            session.read,
            ends_of(session, table),
            holding,
            whole=_kept_by(engine, session, table),
            onto=found,
        )
    return Reached(found, f"{expected.reason}, like the last {expected.times} that were measured")


def _loaded(
    engine: Engine, session: Session, table: StreamTable, program: Program, holding: Holding
) -> pa.Table | Reached:
    """What Spark computes of all rows, or how far we came if that is too much."""
    found: dict[str, pa.Table] = {}
    try:
        with session.bounded():
            inputs = _inputs(session, table, program, holding, onto=found)
        return _computed(engine, table, program, inputs, holding, keeps_plan=False)
    except TooMuch as reason:
        return Reached(found, str(reason))


def _computed(
    engine: Engine,
    table: StreamTable,
    program: Program,
    inputs: Mapping[str, pa.Table],
    holding: Holding,
    *,
    keeps_plan: bool = True,
) -> pa.Table:
    with followable(), engine.computing(table.id) as spark:
        result = run_small(spark, program.spark_sql, inputs, holding.left, keeps_plan=keeps_plan)
    holding.add(result)
    return result


def _note(reached: Reached) -> str:
    return f"; spread over tasks, since it reaches {reached.reason}"


def gathered(
    engine: Engine,
    session: Session,
    table: StreamTable,
    program: Program,
    holding: Holding,
    shared: Mapping[str, pa.Table] = MappingProxyType({}),
    onto: dict[str, pa.Table] | None = None,
) -> dict[str, pa.Table]:
    """What a program computes with, read in the session but for what others read already."""
    return _inputs(session, table, program, holding, _kept_by(engine, session, table), shared, onto)


def has_rows(inputs: Mapping[str, pa.Table]) -> bool:
    """Whether there is anything to compute with."""
    return any(rows.num_rows for rows in inputs.values())


def applied_with_others(session: Session, table: StreamTable, program: Program, result: pa.Table) -> Effect:
    """Apply what Spark returned, where the guard of stream tables is open already."""
    with (
        _as_rows(session, table, program, result) as rows,
        _rescanned(session, table, program, rows) as rescanned,
        _repeatable(program),
    ):
        applied = apply_opened(
            session.write, table.name, table.match_columns, table.id, program.target, rows, rescanned
        )
    return Effect(applied, result.num_rows or applied.inserted + applied.deleted)


def _as_rows(
    session: Session, table: StreamTable, program: Program, result: pa.Table
) -> AbstractContextManager[Rows]:
    return as_relation(session.write, f"rows_{table.id}", carried_columns(program.target), result)


@contextmanager
def _repeatable(program: Program) -> Iterator[None]:
    """Tell an answer that PostgreSQL gives otherwise each time from a table that was tampered with."""
    try:
        yield
    except Diverged as error:
        if any(read.version is not Version.NOW for read in program.reads):
            raise Unfollowable(
                "the query has several right answers, and PostgreSQL gave another one"
            ) from error
        raise


def _inputs(
    session: Session,
    table: StreamTable,
    program: Program,
    holding: Holding,
    whole: Whole | None = None,
    shared: Mapping[str, pa.Table] = MappingProxyType({}),
    onto: dict[str, pa.Table] | None = None,
) -> dict[str, pa.Table]:
    """What the program computes with, on the driver."""
    with followable():
        tables = read_all(
            program.reads,
            session.read,
            ends_of(session, table),
            holding,
            whole=whole,
            shared=shared,
            onto=onto,
        )
    return {one.name: merged(one, tables) for one in program.inputs}


def _applied(session: Session, table: StreamTable, program: Program, rows: Rows, count: int) -> Effect:
    with _rescanned(session, table, program, rows) as rescanned, _repeatable(program):
        applied = apply_changes(
            session.write, table.name, table.match_columns, table.id, program.target, rows, rescanned
        )
    return Effect(applied, count or applied.inserted + applied.deleted)


def _replaced(session: Session, table: StreamTable, program: Program, rows: Rows) -> Applied:
    assert not isinstance(program.target, FirstRows)
    return replace_all(session.write, table.name, table.match_columns, table.id, program.target, rows)


@contextmanager
def _rescanned(session: Session, table: StreamTable, program: Program, rows: Rows) -> Iterator[Rows | None]:
    """The groups that lost their extremum, evaluated by PostgreSQL in the same snapshot."""
    target = program.target
    if not isinstance(target, MergedGroups) or target.rescan is None:
        yield None
        return
    columns = of_fields(target.rescan.fields)
    lost = groups_to_rescan(session.write, table.id, target, rows, MANY_ROWS)
    extrema = (_extrema(session, table, target.rescan, groups) for groups in lost)
    with ExitStack() as stack:
        found = None
        first, second = next(extrema, None), next(extrema, None)
        if first is not None and second is None:
            found = stack.enter_context(as_relation(session.write, f"extrema_{table.id}", columns, first))
        elif first is not None and second is not None:
            found = stack.enter_context(temporary(session.write, f"extrema_{table.id}", columns))
            for part in chain((first, second), extrema):
                copy_onto(session.write, found, columns, part)
        yield found


def _extrema(session: Session, table: StreamTable, rescan: Read, groups: pa.Table) -> pa.Table:
    # as many rows as there are groups, which are portioned
    holding = Memory(lambda: sys.maxsize).holding()
    ends = ends_of(session, table)
    return read_all((rescan,), session.read, ends, holding, given={RESCANNED: groups})["extrema"]


def _kept_by(engine: Engine, session: Session, table: StreamTable) -> Whole:
    """What is kept of the sources, good where this refresh starts."""
    ends = ends_of(session, table)

    def whole(read: Read, ask: Ask) -> pa.Table | None:
        assert read.source is not None
        return engine.kept.whole(table.id, read, ends.frontier(read.source), ask)

    return whole
