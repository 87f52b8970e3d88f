"""Following a change: read the window and what it touches, compute its effect, apply it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from pgtrickle.apply.applying import apply_changes, fill_first_rows, replace_all
from pgtrickle.apply.merging import groups_to_rescan
from pgtrickle.apply.rows import ArrayRows, Rows, StagedRows
from pgtrickle.apply.storage import create_storage, empty_staging, staging_table
from pgtrickle.apply.writing import Applied
from pgtrickle.changes.inputs import merged
from pgtrickle.changes.reading import Whole, fields_of, has_weight, inserted_query, read_all, read_query
from pgtrickle.changes.relations import Ends
from pgtrickle.model.errors import Diverged, SparkFailed
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.source import Source
from pgtrickle.model.stream_table import StreamTable
from pgtrickle.pipeline.distributed import StagingTarget, run_distributed
from pgtrickle.pipeline.ranges import ctid_ranges
from pgtrickle.pipeline.small import run_small
from pgtrickle.pipeline.source import PartitionedQuery
from pgtrickle.plan.lowering.spark import input_sql
from pgtrickle.plan.lowering.spark_text import ONE_TASK
from pgtrickle.plan.program import FirstRows, MergedGroups, Program
from pgtrickle.plan.reads import Read, ReadKind, Version
from pgtrickle.plan.targets.merged import RESCANNED
from pgtrickle.postgres.arrow import arrow_schema, read_arrow
from pgtrickle.postgres.connection import DataError, connect
from pgtrickle.refresh.engine import Engine, Path
from pgtrickle.refresh.session import Session
from pgtrickle.refresh.windows import start_of

PARTS = 8
"""Into how many pieces a large table is split; more than cores, so that none waits long."""
FEW_PAGES = 256
"""So many pages at least, two megabytes, are worth a task with a connection of its own."""

_TOO_LARGE = (
    "ARITHMETIC_OVERFLOW",
    "NUMERIC_VALUE_OUT_OF_RANGE",
    "ArrowInvalid",
    "DataError",
    "DataException",
)


class Unfollowable(Exception):
    """A value that only PostgreSQL can compute with, such as a NaN among decimals."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What an application did, and how many rows came from Spark."""

    applied: Applied
    delta_rows: int


def follow(
    engine: Engine, session: Session, table: StreamTable, program: Program, *, is_large: bool
) -> Effect:
    """Apply the change of the window to the stream table."""
    if is_large and session.can_share:
        with _Staging(engine, session, table, program) as rows:
            return _applied(session, table, program, rows, 0)
    inputs = _inputs(session, table, program, _kept_by(engine, session, table))
    if not any(rows.num_rows for rows in inputs.values()):
        return Effect(Applied(0, 0), 0)
    with _followable():
        result = run_small(engine.spark, program.spark_sql, inputs)
    return _applied(session, table, program, ArrayRows(result), result.num_rows)


def fill(engine: Engine, session: Session, table: StreamTable, program: Program, *, is_large: bool) -> Effect:
    """Let the stream table hold exactly what the program computes of all rows."""
    target = program.target
    if isinstance(target, FirstRows):
        create_storage(session.write, table.id, target)
        return Effect(fill_first_rows(session.write, table.name, table.match_columns, table.id, target), 0)
    if is_large and session.can_share:
        with _Staging(engine, session, table, program) as rows:
            return Effect(_replaced(session, table, program, rows), 0)
    create_storage(session.write, table.id, program.target)
    inputs = _inputs(session, table, program)
    with _followable():
        result = run_small(engine.spark, program.spark_sql, inputs)
    return Effect(_replaced(session, table, program, ArrayRows(result)), result.num_rows)


@contextmanager
def _followable() -> Iterator[None]:
    """Tell values that only PostgreSQL can compute with from failures that may pass."""
    try:
        yield
    except pa.ArrowInvalid as error:
        raise Unfollowable(f"a value cannot be carried to Spark: {error}") from error
    except DataError as error:
        # a row that a join leaves out need not satisfy what is computed of the rows it keeps
        raise Unfollowable(f"while reading: {error.diag.message_primary}") from error
    except SparkFailed as error:
        if any(sign in error.message for sign in _TOO_LARGE):
            raise Unfollowable(error.message) from error
        raise


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
    session: Session, table: StreamTable, program: Program, whole: Whole | None = None
) -> dict[str, pa.Table]:
    """What the program computes with, on the driver."""
    with _followable():
        tables = read_all(program.reads, session.read, _ends(session, table), whole=whole)
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
    found = read_all((target.rescan,), session.read, _ends(session, table), given={RESCANNED: lost})
    return found["extrema"]


def _kept_by(engine: Engine, session: Session, table: StreamTable) -> Whole:
    """What is kept of the sources, good where this refresh starts."""
    ends = _ends(session, table)

    def whole(read: Read, ask: Callable[[Read, int], pa.Table]) -> pa.Table | None:
        assert read.source is not None
        return engine.kept.whole(table.id, read, ends.frontier(read.source), ask)

    return whole


def _ends(session: Session, table: StreamTable) -> Ends:
    def frontier(source: Source) -> Frontier:
        return start_of(table, source) or Frontier(3, 3)

    return Ends(frontier, table.data_timestamp, session.taken_at)


def _over_reads(program: Program) -> str:
    """The program's SQL over views of the reads themselves."""
    inputs = ", ".join(f"{one.name} as ({input_sql(one)})" for one in program.inputs)
    text = program.spark_sql.replace(ONE_TASK, "")
    return f"with {inputs} {text}" if inputs else text


class _Staging:
    """The rows of a program, computed by many tasks and copied by them into the staging table."""

    def __init__(self, engine: Engine, session: Session, table: StreamTable, program: Program) -> None:
        self._engine, self._session, self._table, self._program = engine, session, table, program
        self._snapshot, self._ends = session.shared(), _ends(session, table)

    def __enter__(self) -> StagedRows:
        name = staging_table(self._table.id)
        with connect(self._engine.dsn, autocommit=True) as connection:
            create_storage(connection, self._table.id, self._program.target)
            row = connection.execute("select pg_current_xact_id()::text::bigint").fetchone()
        assert row is not None
        staging = StagingTarget(self._engine.dsn, name.name, row[0])
        with _followable():
            staged = run_distributed(self._engine.spark, _over_reads(self._program), self._inputs(), staging)
        return StagedRows(name, row[0], staged.attempts)

    def __exit__(self, *_: object) -> None:
        with connect(self._engine.dsn, autocommit=True) as connection:
            empty_staging(connection, staging_table(self._table.id))

    def _inputs(self) -> Mapping[str, PartitionedQuery | pa.Table]:
        used = {name for one in self._program.inputs for name, _ in one.reads}
        return {read.name: self._input(read) for read in self._program.reads if read.name in used}

    def _input(self, read: Read) -> PartitionedQuery | pa.Table:
        """Many tasks read a large source; a small one costs less to read here than to start a task."""
        if read.earlier:
            # the first read of this source has it all
            return arrow_schema(fields_of(read), has_weight=has_weight(read)).empty_table()
        pieces = self._pieces(read)
        if self._engine.path is Path.AUTO and read.kind is ReadKind.ROWS and len(pieces) == 1:
            query = read_query(read, self._ends, None)
            return read_arrow(self._session.read, query, fields_of(read), has_weight=has_weight(read))
        queries = [read_query(read, self._ends, None, piece) for piece in pieces]
        if read.is_changed and read.kind is ReadKind.ROWS:
            queries.append(inserted_query(read, self._ends, None))
        return PartitionedQuery(
            tuple(query.as_string(self._session.read) for query in queries),
            fields_of(read),
            self._snapshot,
            self._table.settings,
            has_weight=has_weight(read),
        )

    def _pieces(self, read: Read) -> list[str | None]:
        if read.kind is not ReadKind.ROWS or read.source is None:
            return [None]
        least = FEW_PAGES if self._engine.path is Path.AUTO else 1
        return [*ctid_ranges(self._session.read, read.source, PARTS, least_pages=least)]
