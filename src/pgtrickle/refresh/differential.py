"""Following a change: read the window and what it touches, compute its effect, apply it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType

import pyarrow as pa

from pgtrickle.apply.applying import apply_changes, apply_opened, fill_first_rows, replace_all
from pgtrickle.apply.merging import groups_to_rescan
from pgtrickle.apply.rows import ArrayRows, Rows
from pgtrickle.apply.storage import create_storage
from pgtrickle.apply.writing import Applied
from pgtrickle.changes.inputs import merged
from pgtrickle.changes.reading import Whole, read_all
from pgtrickle.model.errors import Diverged
from pgtrickle.model.stream_table import StreamTable
from pgtrickle.pipeline.small import run_small
from pgtrickle.plan.program import FirstRows, MergedGroups, Program
from pgtrickle.plan.reads import Read, Version
from pgtrickle.plan.targets.merged import RESCANNED
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.session import Session
from pgtrickle.refresh.staging import Staging
from pgtrickle.refresh.unfollowable import Unfollowable, followable
from pgtrickle.refresh.windows import ends_of


@dataclass(frozen=True, slots=True)
class Effect:
    """What an application did, and how many rows came from Spark."""

    applied: Applied
    delta_rows: int


NOTHING = Effect(Applied(0, 0), 0)


def follow(
    engine: Engine, session: Session, table: StreamTable, program: Program, *, is_large: bool
) -> Effect:
    """Apply the change of the window to the stream table."""
    if is_large and session.can_share:
        with Staging(engine, session, table, program) as rows:
            return _applied(session, table, program, rows, 0)
    inputs = gathered(engine, session, table, program)
    if not has_rows(inputs):
        return NOTHING
    with followable():
        result = run_small(engine.spark, program.spark_sql, inputs)
    return _applied(session, table, program, ArrayRows(result), result.num_rows)


def fill(engine: Engine, session: Session, table: StreamTable, program: Program, *, is_large: bool) -> Effect:
    """Let the stream table hold exactly what the program computes of all rows."""
    target = program.target
    if isinstance(target, FirstRows):
        create_storage(session.write, table.id, target)
        return Effect(fill_first_rows(session.write, table.name, table.match_columns, table.id, target), 0)
    if is_large and session.can_share:
        with Staging(engine, session, table, program) as rows:
            return Effect(_replaced(session, table, program, rows), 0)
    create_storage(session.write, table.id, program.target)
    inputs = _inputs(session, table, program)
    with followable():
        result = run_small(engine.spark, program.spark_sql, inputs, keeps_plan=False)
    return Effect(_replaced(session, table, program, ArrayRows(result)), result.num_rows)


def gathered(
    engine: Engine,
    session: Session,
    table: StreamTable,
    program: Program,
    shared: Mapping[str, pa.Table] = MappingProxyType({}),
) -> dict[str, pa.Table]:
    """What a program computes with, read in the session but for what others read already."""
    return _inputs(session, table, program, _kept_by(engine, session, table), shared)


def has_rows(inputs: Mapping[str, pa.Table]) -> bool:
    """Whether there is anything to compute with."""
    return any(rows.num_rows for rows in inputs.values())


def applied_with_others(session: Session, table: StreamTable, program: Program, result: pa.Table) -> Effect:
    """Apply what Spark returned, where the guard of stream tables is open already."""
    rows = ArrayRows(result)
    rescanned = _rescanned(session, table, program, rows)
    with _repeatable(program):
        applied = apply_opened(
            session.write, table.name, table.match_columns, table.id, program.target, rows, rescanned
        )
    return Effect(applied, result.num_rows or applied.inserted + applied.deleted)


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
    whole: Whole | None = None,
    shared: Mapping[str, pa.Table] = MappingProxyType({}),
) -> dict[str, pa.Table]:
    """What the program computes with, on the driver."""
    with followable():
        tables = read_all(program.reads, session.read, ends_of(session, table), whole=whole, shared=shared)
    return {one.name: merged(one, tables) for one in program.inputs}


def _applied(session: Session, table: StreamTable, program: Program, rows: Rows, count: int) -> Effect:
    rescanned = _rescanned(session, table, program, rows)
    with _repeatable(program):
        applied = apply_changes(
            session.write, table.name, table.match_columns, table.id, program.target, rows, rescanned
        )
    return Effect(applied, count or applied.inserted + applied.deleted)


def _replaced(session: Session, table: StreamTable, program: Program, rows: Rows) -> Applied:
    assert not isinstance(program.target, FirstRows)
    return replace_all(session.write, table.name, table.match_columns, table.id, program.target, rows)


def _rescanned(session: Session, table: StreamTable, program: Program, rows: Rows) -> pa.Table | None:
    """The groups that lost their extremum, evaluated by PostgreSQL in the same snapshot."""
    target = program.target
    if not isinstance(target, MergedGroups) or target.rescan is None:
        return None
    lost = groups_to_rescan(session.write, table.id, target, rows)
    if lost is None:
        return None
    found = read_all((target.rescan,), session.read, ends_of(session, table), given={RESCANNED: lost})
    return found["extrema"]


def _kept_by(engine: Engine, session: Session, table: StreamTable) -> Whole:
    """What is kept of the sources, good where this refresh starts."""
    ends = ends_of(session, table)

    def whole(read: Read, ask: Callable[[Read, int], pa.Table]) -> pa.Table | None:
        assert read.source is not None
        return engine.kept.whole(table.id, read, ends.frontier(read.source), ask)

    return whole
