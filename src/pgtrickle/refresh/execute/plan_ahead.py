"""Has Spark plan the programs of a stream table that was just loaded, before the first change arrives.

Planning takes Spark several times as long as following a small window. After a load there is time for it: the
rows are committed, and nobody waits. The plan is that of a window in which every source has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

import pyarrow as pa

from pgtrickle.changes.inputs import weighted_input
from pgtrickle.changes.read import fields_of, has_weight
from pgtrickle.model.errors import PgTrickleError
from pgtrickle.model.settings import SparkPath
from pgtrickle.model.stream_table import Action, RefreshOutcome
from pgtrickle.pipeline.small import run_small
from pgtrickle.plan.program import Program
from pgtrickle.plan.programs import programs_for_all
from pgtrickle.postgres.arrow import arrow_schema
from pgtrickle.postgres.connection import DatabaseError
from pgtrickle.refresh.compilation import CompiledTable
from pgtrickle.refresh.decide.costs import kind_of_change
from pgtrickle.refresh.decide.sizes import estimated_rows
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.outcome import Result


def plan_ahead(engine: Engine, members: Iterable[CompiledTable], results: Sequence[Result]) -> None:
    """Plan the programs of the tables that were loaded; a failure is left to the refresh that needs them."""
    loaded = {
        result.name
        for result in results
        if isinstance(result, RefreshOutcome) and result.action is Action.REINITIALIZE
    }
    for member in members:
        if member.table.name in loaded:
            with suppress(PgTrickleError, DatabaseError):
                if _is_worth_it(engine, member):
                    _plan(engine, member)


def _is_worth_it(engine: Engine, member: CompiledTable) -> bool:
    """Whether the table is so large that AUTO would have a choice."""
    if member.compilation.compiled is None or engine.path is not SparkPath.AUTO:
        return False
    tables = [source.table.sql for source in member.compilation.sources]
    with engine.connection() as connection:
        return estimated_rows(connection, tables) >= engine.costs.limits.worth_rows


def _plan(engine: Engine, member: CompiledTable) -> None:
    compiled, table = member.compilation.compiled, member.table
    assert compiled is not None
    with engine.computing(table.id) as spark:
        for program in programs_for_all(compiled):
            run_small(spark, program.spark_sql, _empty_inputs(program), keeps_plan=True)
    engine.costs.note_planned(table.id, kind_of_change(compiled.sources))


def _empty_inputs(program: Program) -> dict[str, pa.Table]:
    """The inputs of a window without rows; the plan is the same for any number of rows."""
    tables = {
        read.name: arrow_schema(fields_of(read), has_weight=has_weight(read)).empty_table()
        for read in program.reads
    }
    return {one.name: weighted_input(one, tables) for one in program.inputs}
