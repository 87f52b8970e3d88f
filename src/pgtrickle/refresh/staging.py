"""The distributed path of a refresh: Spark's tasks read, compute, and copy their rows into staging."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from types import TracebackType

from pgtrickle.apply.copying import temporary
from pgtrickle.apply.rows import Rows, StagedRows, carried_columns, relation_of
from pgtrickle.apply.storage import (
    create_staging,
    create_storage,
    empty_staging,
    results_table,
    staging_table,
)
from pgtrickle.changes.inputs import first_found
from pgtrickle.changes.memory import Holding
from pgtrickle.changes.reading import has_weight
from pgtrickle.model.settings import SparkPath
from pgtrickle.model.stream_table import StreamTable
from pgtrickle.pipeline.distributed import Given, StagingTarget, run_distributed
from pgtrickle.pipeline.source import PartitionedQuery
from pgtrickle.pipeline.spooling import spooled
from pgtrickle.plan.lowering.spark_text import ONE_TASK
from pgtrickle.plan.passes.spark_sql import input_sql
from pgtrickle.plan.program import Program
from pgtrickle.plan.reads import Read
from pgtrickle.postgres.arrow import arrow_schema, read_batches
from pgtrickle.postgres.connection import connect, sql
from pgtrickle.postgres.copy_across import copy_across
from pgtrickle.postgres.settings import evaluation
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.reaching import Reached, Reading, Splitting, reading_of, whole_reading
from pgtrickle.refresh.session import Session
from pgtrickle.refresh.spreading import scans_of, spread
from pgtrickle.refresh.unfollowable import followable
from pgtrickle.refresh.windows import ends_of

PARTS = 8
"""Into how many pieces a large table is split; more than cores, so that none waits long."""
FEW_PAGES = 256
"""So many pages at least, two megabytes, are worth a task with a connection of its own."""


class Staging:
    """The rows of a program, computed by many tasks and copied by them into a table.

    With what was `reached`, tasks go on from there; without it they read every source as a whole. Where
    the snapshot can be shared, tasks read it. Where it cannot, since the refresh sees its own writes, we
    read it for them in portions, and copy their rows into our transaction, which does not see theirs.

    What the tasks and this open comes out of the number of connections that the refresh is given.
    """

    def __init__(
        self,
        engine: Engine,
        session: Session,
        table: StreamTable,
        program: Program,
        holding: Holding,
        reached: Reached | None = None,
    ) -> None:
        self._engine, self._session, self._table, self._program = engine, session, table, program
        # from here on only the bytes matter
        holding.max_rows = None
        self._holding = holding
        self._snapshot = session.shared() if session.can_share else ""
        self._ends, self._reached = ends_of(session, table), reached
        self._name = staging_table(table.id) if session.can_share else results_table(table.id)
        self._stack = ExitStack()

    def __enter__(self) -> Rows:
        with ExitStack() as stack:
            places = stack.enter_context(self._engine.pool.reserve_for_tasks(self._engine.max_connections))
            rows: Rows = self._staged(places)
            stack.callback(self._leave)
            if not self._session.can_share:
                rows = stack.enter_context(self._copied(rows))
            self._stack = stack.pop_all()
            return rows

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def _leave(self) -> None:
        with connect(self._engine.dsn, autocommit=True) as connection:
            empty_staging(connection, self._name)

    def _staged(self, places: int) -> StagedRows:
        with connect(self._engine.dsn, autocommit=True) as connection:
            if self._session.can_share:
                create_storage(connection, self._table.id, self._program.target)
            else:
                create_staging(connection, self._name, self._program.target)
            # the run before could not do it: its transaction still held what it had read
            empty_staging(connection, self._name)
            row = connection.execute("select pg_current_xact_id()::text::bigint").fetchone()
        assert row is not None
        staging = StagingTarget(self._engine.dsn, self._name.name, row[0])
        with followable(), self._engine.computing(self._table.id) as spark:
            inputs, writers = self._inputs(places)
            staged = run_distributed(spark, _over_reads(self._program), inputs, staging, writers=writers)
        return StagedRows(self._name, row[0], staged.attempts)

    @contextmanager
    def _copied(self, rows: Rows) -> Iterator[Rows]:
        """The rows, where our transaction sees them."""
        columns = carried_columns(self._program.target)
        given = relation_of(rows, columns)
        names = [column.name for column in columns]
        with (
            temporary(self._session.write, self._name.name, columns) as copied,
            connect(self._engine.dsn) as connection,
        ):
            table = sql.Identifier(copied.table.schema, copied.table.name)
            copy_across(connection, given.query, given.parameters, self._session.write, table, names)
            yield copied

    def _inputs(self, places: int) -> tuple[dict[str, Given], int]:
        """What the tasks and we read, and how many tasks may write."""
        scans = scans_of(self._program)
        reads = [read for read in self._program.reads if read.name in scans]
        splitting = Splitting(PARTS, FEW_PAGES if self._engine.path is SparkPath.AUTO else 1)
        found = self._reading(reads, splitting)
        shared = {name: len(queries) for name, queries in found.queries.items() if name in scans and queries}
        bounds = spread(places, shared if self._session.can_share else {}, scans)
        inputs: dict[str, Given] = {
            read.name: first_found(found.held[read.name])
            if read.name in found.held
            else self._input(read, found.queries[read.name], bounds.readers.get(read.name))
            for read in reads
        }
        return inputs, bounds.writers

    def _reading(self, reads: Sequence[Read], splitting: Splitting) -> Reading:
        session, ends, holding = self._session, self._ends, self._holding
        if self._reached is not None:
            return reading_of(session, self._program, ends, self._reached.tables, holding, splitting)
        holds_small = self._engine.path is SparkPath.AUTO
        return whole_reading(session, reads, ends, holding, splitting, holds_small=holds_small)

    def _input(self, read: Read, queries: Sequence[sql.Composable], readers: int | None) -> Given:
        weighted = has_weight(read)
        schema = arrow_schema(read.fields, has_weight=weighted)
        if not queries:
            return schema.empty_table()
        if readers is None:
            batches = (read_batches(self._session.read, query, schema) for query in queries)
            return spooled(self._engine.spark, chain.from_iterable(batches), schema)
        return PartitionedQuery(
            tuple(query.as_string(self._session.read) for query in queries),
            read.fields,
            self._snapshot,
            (*evaluation(self._table.settings).items(), *self._engine.task_settings()),
            has_weight=weighted,
            tasks=readers,
        )


def _over_reads(program: Program) -> str:
    """The program's SQL over views of the reads themselves."""
    inputs = ", ".join(f"{one.name} as ({input_sql(one)})" for one in program.inputs)
    text = program.spark_sql.replace(ONE_TASK, "")
    return f"with {inputs} {text}" if inputs else text
