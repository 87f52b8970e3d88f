"""The distributed path of a refresh: Spark's tasks read, compute, and copy their rows into staging."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack

import pyarrow as pa

from pgtrickle.apply.rows import StagedRows
from pgtrickle.apply.storage import create_storage, empty_staging, staging_table
from pgtrickle.changes.reading import fields_of, has_weight, inserted_query, read_query
from pgtrickle.model.stream_table import StreamTable
from pgtrickle.pipeline.distributed import StagingTarget, run_distributed
from pgtrickle.pipeline.ranges import ctid_ranges
from pgtrickle.pipeline.source import PartitionedQuery
from pgtrickle.plan.lowering.spark import input_sql
from pgtrickle.plan.lowering.spark_text import ONE_TASK
from pgtrickle.plan.program import Program
from pgtrickle.plan.reads import Read, ReadKind
from pgtrickle.postgres.arrow import arrow_schema, read_arrow
from pgtrickle.postgres.connection import connect, sql
from pgtrickle.refresh.engine import Engine, Path
from pgtrickle.refresh.session import Session
from pgtrickle.refresh.spreading import scans_of, spread
from pgtrickle.refresh.unfollowable import followable
from pgtrickle.refresh.windows import ends_of

PARTS = 8
"""Into how many pieces a large table is split; more than cores, so that none waits long."""
FEW_PAGES = 256
"""So many pages at least, two megabytes, are worth a task with a connection of its own."""


class Staging:
    """The rows of a program, computed by many tasks and copied by them into the staging table.

    The refresh holds two connections already; what its tasks and this open comes out of the same number.
    """

    def __init__(self, engine: Engine, session: Session, table: StreamTable, program: Program) -> None:
        self._engine, self._session, self._table, self._program = engine, session, table, program
        self._snapshot, self._ends = session.shared(), ends_of(session, table)
        self._stack = ExitStack()

    def __enter__(self) -> StagedRows:
        with ExitStack() as stack:
            places = stack.enter_context(self._engine.pool.places(self._engine.max_connections))
            staged = self._staged(places)
            self._stack = stack.pop_all()
            return staged

    def __exit__(self, *_: object) -> None:
        with self._stack, connect(self._engine.dsn, autocommit=True) as connection:
            empty_staging(connection, staging_table(self._table.id))

    def _staged(self, places: int) -> StagedRows:
        name = staging_table(self._table.id)
        with connect(self._engine.dsn, autocommit=True) as connection:
            create_storage(connection, self._table.id, self._program.target)
            row = connection.execute("select pg_current_xact_id()::text::bigint").fetchone()
        assert row is not None
        staging = StagingTarget(self._engine.dsn, name.name, row[0])
        with followable():
            inputs, writers = self._inputs(places)
            staged = run_distributed(
                self._engine.spark, _over_reads(self._program), inputs, staging, writers=writers
            )
        return StagedRows(name, row[0], staged.attempts)

    def _inputs(self, places: int) -> tuple[dict[str, PartitionedQuery | pa.Table], int]:
        """What the tasks and we read, and how many tasks may write."""
        scans = scans_of(self._program)
        reads = [read for read in self._program.reads if read.name in scans]
        queries = {read.name: self._queries(read) for read in reads}
        pieces = {read.name: len(queries[read.name]) for read in reads if self._is_spread(read, queries)}
        bounds = spread(places, pieces, scans)
        found = {
            read.name: self._input(read, queries[read.name], bounds.readers.get(read.name)) for read in reads
        }
        return found, bounds.writers

    def _input(
        self, read: Read, queries: list[sql.Composable], readers: int | None
    ) -> PartitionedQuery | pa.Table:
        fields, weighted = fields_of(read), has_weight(read)
        if readers is None:
            parts = [read_arrow(self._session.read, one, fields, has_weight=weighted) for one in queries]
            return pa.concat_tables([arrow_schema(fields, has_weight=weighted).empty_table(), *parts])
        return PartitionedQuery(
            tuple(query.as_string(self._session.read) for query in queries),
            fields,
            self._snapshot,
            self._table.settings,
            has_weight=weighted,
            tasks=readers,
        )

    def _queries(self, read: Read) -> list[sql.Composable]:
        """The texts that together read it; none where the first read of its source has it all."""
        if read.earlier:
            return []
        pieces = self._pieces(read)
        if self._is_small(read, pieces):
            return [read_query(read, self._ends, None)]
        queries: list[sql.Composable] = [read_query(read, self._ends, None, piece) for piece in pieces]
        if read.is_changed and read.kind is ReadKind.ROWS:
            queries.append(inserted_query(read, self._ends, None))
        return queries

    def _is_spread(self, read: Read, queries: Mapping[str, Sequence[object]]) -> bool:
        return bool(queries[read.name]) and not self._is_small(read, queries[read.name])

    def _is_small(self, read: Read, pieces: Sequence[object]) -> bool:
        """Whether a source costs less to read here than to start a task."""
        return self._engine.path is Path.AUTO and read.kind is ReadKind.ROWS and len(pieces) == 1

    def _pieces(self, read: Read) -> list[str | None]:
        if read.kind is not ReadKind.ROWS or read.source is None:
            return [None]
        least = FEW_PAGES if self._engine.path is Path.AUTO else 1
        return [*ctid_ranges(self._session.read, read.source, PARTS, least_pages=least)]


def _over_reads(program: Program) -> str:
    """The program's SQL over views of the reads themselves."""
    inputs = ", ".join(f"{one.name} as ({input_sql(one)})" for one in program.inputs)
    text = program.spark_sql.replace(ONE_TASK, "")
    return f"with {inputs} {text}" if inputs else text
