"""Large windows and first loads: computed by many tasks, and copied by them into the staging table."""

from __future__ import annotations

from collections.abc import Mapping

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
from pgtrickle.postgres.connection import connect
from pgtrickle.refresh.ends import ends_of, followable
from pgtrickle.refresh.engine import Engine, Path
from pgtrickle.refresh.session import Session

PARTS = 8
"""Into how many pieces a large table is split; more than cores, so that none waits long."""
FEW_PAGES = 256
"""So many pages at least, two megabytes, are worth a task with a connection of its own."""


def _over_reads(program: Program) -> str:
    """The program's SQL over views of the reads themselves."""
    inputs = ", ".join(f"{one.name} as ({input_sql(one)})" for one in program.inputs)
    text = program.spark_sql.replace(ONE_TASK, "")
    return f"with {inputs} {text}" if inputs else text


class Staging:
    """The rows of a program, computed by many tasks and copied by them into the staging table."""

    def __init__(self, engine: Engine, session: Session, table: StreamTable, program: Program) -> None:
        self._engine, self._session, self._table, self._program = engine, session, table, program
        self._snapshot, self._ends = session.shared(), ends_of(session, table)

    def __enter__(self) -> StagedRows:
        name = staging_table(self._table.id)
        with connect(self._engine.dsn, autocommit=True) as connection:
            create_storage(connection, self._table.id, self._program.target)
            row = connection.execute("select pg_current_xact_id()::text::bigint").fetchone()
        assert row is not None
        staging = StagingTarget(self._engine.dsn, name.name, row[0])
        with followable():
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
