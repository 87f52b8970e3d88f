"""One program of a stream table: read its inputs into the driver, and compute on Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType

import pyarrow as pa

from pgtrickle.changes.inputs import weighted_input
from pgtrickle.changes.kept_rows import Ask
from pgtrickle.changes.memory import Holding
from pgtrickle.changes.read import Whole, read_all
from pgtrickle.changes.relations import Ends
from pgtrickle.model.auxiliary import owner_id
from pgtrickle.model.phases import Phase
from pgtrickle.model.settings import SparkPath
from pgtrickle.model.stream_table import StreamTable, StreamTableId
from pgtrickle.pipeline.small import run_small
from pgtrickle.plan.program import Program
from pgtrickle.plan.reads import Read
from pgtrickle.refresh.decide.windows import ends_of
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.faults import unfollowable_values
from pgtrickle.refresh.session import Session


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """One program of a stream table in a session, and the memory of the driver that it may hold."""

    engine: Engine
    session: Session
    table: StreamTable
    program: Program
    holding: Holding

    @property
    def ends(self) -> Ends:
        """Both ends of the window that the program follows."""
        return ends_of(self.session, self.table)


@contextmanager
def open_run(engine: Engine, session: Session, table: StreamTable, program: Program) -> Iterator[ProgramRun]:
    """A run that gives its memory back at the end.

    If tasks can share the snapshot, the run is limited to the rows up to which the driver is faster.
    """
    is_limited = session.can_share and engine.path is SparkPath.AUTO
    with engine.memory.holding(max_rows=engine.large_reach if is_limited else None) as holding:
        yield ProgramRun(engine, session, table, program, holding)


def read_inputs(
    run: ProgramRun,
    shared: Mapping[str, pa.Table] = MappingProxyType({}),
    onto: dict[str, pa.Table] | None = None,
) -> dict[str, pa.Table]:
    """Read the window and the rows it affects, without the reads that are `shared` with other tables."""
    with run.session.phases.measure(Phase.READ), unfollowable_values():
        tables = read_all(
            run.program.reads,
            run.session.read,
            run.ends,
            run.holding,
            whole=kept_rows(run),
            shared=shared,
            onto=onto,
        )
        return _weighted_inputs(run, tables)


def read_all_rows(run: ProgramRun, onto: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """Read all rows of the sources, for a load."""
    with run.session.phases.measure(Phase.READ), unfollowable_values():
        tables = read_all(run.program.reads, run.session.read, run.ends, run.holding, onto=onto)
        return _weighted_inputs(run, tables)


def compute(run: ProgramRun, inputs: Mapping[str, pa.Table], *, keeps_plan: bool) -> pa.Table:
    """Run the program on Spark over these inputs."""
    with (
        run.session.phases.measure(Phase.COMPUTE),
        unfollowable_values(),
        run.engine.computing(StreamTableId(owner_id(run.table.id))) as spark,
    ):
        result = run_small(spark, run.program.spark_sql, inputs, run.holding.left, keeps_plan=keeps_plan)
    run.holding.add(result)
    return result


def has_rows(inputs: Mapping[str, pa.Table]) -> bool:
    """Whether there is anything to compute with."""
    return any(rows.num_rows for rows in inputs.values())


def kept_rows(run: ProgramRun) -> Whole:
    """Looks up the rows of small unchanged sources that the process keeps in memory."""
    ends, owner = run.ends, StreamTableId(owner_id(run.table.id))

    def whole(read: Read, ask: Ask) -> pa.Table | None:
        assert read.source is not None
        return run.engine.kept.whole(owner, read, ends.frontier(read.source), ask)

    return whole


def _weighted_inputs(run: ProgramRun, tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    return {one.name: weighted_input(one, tables) for one in run.program.inputs}
