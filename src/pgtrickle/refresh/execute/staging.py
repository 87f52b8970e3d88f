"""The distributed path of a refresh: Spark's tasks read, compute, and copy their rows into staging."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from types import TracebackType

from pgtrickle.apply.result_rows import Rows, StagedRows, carried_columns, relation_of
from pgtrickle.apply.storage import (
    create_staging,
    create_storage,
    empty_staging,
    results_table,
    staging_table,
)
from pgtrickle.apply.temporary_rows import temporary_table
from pgtrickle.changes.inputs import without_repeats
from pgtrickle.changes.read import has_weight
from pgtrickle.model.auxiliary import owner_id
from pgtrickle.model.phases import Phase
from pgtrickle.model.settings import SparkPath
from pgtrickle.model.stream_table import StreamTableId
from pgtrickle.pipeline.distributed import Given, StagingTarget, run_distributed
from pgtrickle.pipeline.source import PartitionedQuery
from pgtrickle.pipeline.spooling import spool
from pgtrickle.plan.lowering.spark_text import ONE_TASK
from pgtrickle.plan.passes.spark_sql import input_sql
from pgtrickle.plan.program import Program
from pgtrickle.plan.reads import Read
from pgtrickle.postgres.arrow import arrow_schema, read_batches
from pgtrickle.postgres.connection import connect, sql
from pgtrickle.postgres.copy_across import copy_across
from pgtrickle.postgres.settings import evaluation
from pgtrickle.refresh.execute.compute import ProgramRun
from pgtrickle.refresh.execute.task_reads import (
    PartialRead,
    ReadPlan,
    ReadQuery,
    Splitting,
    plan_remaining_reads,
    plan_whole_reads,
)
from pgtrickle.refresh.faults import unfollowable_values

LEAST_PARTS = 2
"""A large table is split into as many pieces as tasks run at a time, and into this many at least."""
FEW_PAGES = 256
"""The least number of pages, two megabytes, that is worth a task with a connection of its own."""


class Staging:
    """The rows of a run, computed by many tasks and copied by them into a table.

    After a partial read, tasks continue from there; without one they read every source as a whole. If the
    snapshot can be shared, tasks read in it. If it cannot, because the refresh sees its own writes, the
    driver reads for them in portions, and copies their rows into our transaction, which does not see theirs.

    The connections of the tasks count against the number of connections that the refresh may open.
    """

    def __init__(self, run: ProgramRun, partial: PartialRead | None = None) -> None:
        self._run, self._partial = run, partial
        self._engine, self._session, self._program = run.engine, run.session, run.program
        # from here on only the bytes matter
        run.holding.max_rows = None
        shares = run.session.can_share
        self._snapshot = run.session.export_snapshot() if shares else ""
        self._name = staging_table(run.table.id) if shares else results_table(run.table.id)
        self._stack = ExitStack()

    def __enter__(self) -> Rows:
        with ExitStack() as stack:
            places = stack.enter_context(self._engine.pool.reserve_for_tasks(self._engine.max_connections))
            rows: Rows = self._run_tasks(places)
            stack.callback(self._empty)
            if not self._session.can_share:
                rows = stack.enter_context(self._copied_rows(rows))
            self._stack = stack.pop_all()
            return rows

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def _empty(self) -> None:
        with connect(self._engine.dsn, autocommit=True) as connection:
            empty_staging(connection, self._name)

    def _run_tasks(self, places: int) -> StagedRows:
        table = self._run.table
        with connect(self._engine.dsn, autocommit=True) as connection:
            if self._session.can_share:
                create_storage(connection, table.id, self._program.target)
            else:
                create_staging(connection, self._name, self._program.target)
            # the last run could not empty it: its own transaction still held a lock
            empty_staging(connection, self._name)
            row = connection.execute("select pg_current_xact_id()::text::bigint").fetchone()
        assert row is not None
        staging = StagingTarget(self._engine.dsn_of_tasks, self._name.name, row[0])
        phases = self._session.phases
        with (
            phases.measure(Phase.COMPUTE),
            unfollowable_values(),
            self._engine.computing(StreamTableId(owner_id(table.id))) as spark,
        ):
            with phases.measure(Phase.READ):
                inputs, writers = self._inputs(places)
            staged = run_distributed(spark, _sql_over_reads(self._program), inputs, staging, writers=writers)
        return StagedRows(self._name, row[0], staged.attempts)

    @contextmanager
    def _copied_rows(self, rows: Rows) -> Iterator[Rows]:
        """The rows in a table that our transaction sees."""
        columns = carried_columns(self._program.target)
        given = relation_of(rows, columns)
        names = [column.name for column in columns]
        with (
            temporary_table(self._session.write, self._name.name, columns) as copied,
            connect(self._engine.dsn) as connection,
        ):
            table = sql.Identifier(copied.table.schema, copied.table.name)
            with self._session.phases.measure(Phase.APPLY):
                copy_across(connection, given.query, given.parameters, self._session.write, table, names)
            yield copied

    def _inputs(self, places: int) -> tuple[dict[str, Given], int]:
        """What the tasks and the driver read, and how many tasks may write."""
        scans = scan_counts(self._program)
        reads = [read for read in self._program.reads if read.name in scans]
        splitting = Splitting(
            max(LEAST_PARTS, self._engine.spark.slots),
            FEW_PAGES if self._engine.path is SparkPath.AUTO else 1,
        )
        plan = self._read_plan(reads, splitting)
        pieces = {name: len(queries) for name, queries in plan.queries.items() if name in scans and queries}
        shares = divide_connections(places, pieces if self._session.can_share else {}, scans)
        inputs: dict[str, Given] = {
            read.name: without_repeats(plan.held[read.name])
            if read.name in plan.held
            else self._input(read, plan.queries[read.name], shares.readers.get(read.name))
            for read in reads
        }
        return inputs, shares.writers

    def _read_plan(self, reads: Sequence[Read], splitting: Splitting) -> ReadPlan:
        if self._partial is not None:
            return plan_remaining_reads(self._run, self._partial, splitting)
        holds_small = self._engine.path is SparkPath.AUTO
        return plan_whole_reads(self._run, reads, splitting, holds_small=holds_small)

    def _input(self, read: Read, queries: Sequence[ReadQuery], readers: int | None) -> Given:
        weighted = has_weight(read)
        schema = arrow_schema(read.fields, has_weight=weighted)
        if not queries:
            return schema.empty_table()
        if readers is None:
            batches = (read_batches(self._session.read, query.rows, schema) for query in queries)
            return spool(self._engine.spark, chain.from_iterable(batches), schema)
        return PartitionedQuery(
            tuple(query.for_task(self._session.read) for query in queries),
            read.fields,
            self._snapshot,
            (*evaluation(self._run.table.settings).items(), *self._engine.task_settings()),
            has_weight=weighted,
            tasks=readers,
        )


def _sql_over_reads(program: Program) -> str:
    """The SQL of the program over views of its reads."""
    inputs = ", ".join(f"{one.name} as ({input_sql(one)})" for one in program.inputs)
    text = program.spark_sql.replace(ONE_TASK, "")
    return f"with {inputs} {text}" if inputs else text


@dataclass(frozen=True, slots=True)
class ConnectionShares:
    """The most `readers` of each read, without those that the driver reads, and the most `writers`."""

    readers: Mapping[str, int]
    writers: int


def divide_connections(places: int, pieces: Mapping[str, int], scans: Mapping[str, int]) -> ConnectionShares:
    """Divide the connections among the reads, by how many `pieces` and how many `scans` each has.

    For each scan of a piece, one task at a time reads it, whatever plan Spark chooses. So the tasks never
    have more connections than the readers of all scans and the writers together.
    """
    writers = max(1, places * 2 // 5)
    left = places - writers
    readers: dict[str, int] = {}
    for name in sorted(pieces, key=lambda name: -pieces[name]):
        if scans[name] <= left:
            readers[name] = 1
            left -= scans[name]
    growing = list(readers)
    while growing:
        growing = [name for name in growing if readers[name] < pieces[name] and scans[name] <= left]
        for name in growing:
            if scans[name] <= left:
                readers[name] += 1
                left -= scans[name]
    return ConnectionShares(readers, writers)


def scan_counts(program: Program) -> dict[str, int]:
    """How often the SQL of the program scans each read: an input that it names twice is read twice."""
    found: dict[str, int] = {}
    for one in program.inputs:
        named = len(re.findall(rf"\b{re.escape(one.name)}\b", program.spark_sql))
        for name, _ in one.reads:
            found[name] = found.get(name, 0) + max(1, named)
    return found
