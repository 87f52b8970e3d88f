"""Carries out the step of one stream table: follow the change, load all rows, or let PostgreSQL evaluate."""

from __future__ import annotations

from typing import Any, cast

from pgtrickle.apply.apply import replace_from_query_staging
from pgtrickle.apply.storage import create_query_staging
from pgtrickle.apply.stored_table import stored_table
from pgtrickle.catalog.trust import lock_for_apply
from pgtrickle.changes.memory import TooMuch
from pgtrickle.model.phases import Phase
from pgtrickle.model.stream_table import Action, StreamTable
from pgtrickle.plan.program import Output
from pgtrickle.postgres.connection import sql
from pgtrickle.refresh.compilation import Compilation
from pgtrickle.refresh.decide.action import Step
from pgtrickle.refresh.decide.sizes import is_large_load, is_large_window
from pgtrickle.refresh.divergence import end_repairs
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.execute.auxiliary import follow_auxiliaries, load_auxiliaries, recompute_auxiliaries
from pgtrickle.refresh.execute.compute import open_run
from pgtrickle.refresh.execute.differential import follow, load, recompute_all
from pgtrickle.refresh.execute.feed import open_recording
from pgtrickle.refresh.outcome import NOTHING, Effect
from pgtrickle.refresh.session import Session, evaluating_query


def execute(engine: Engine, session: Session, step: Step) -> Effect:
    """Carry out what was decided, for this table alone."""
    table, compilation = step.table, step.compilation
    lock_for_apply(session.write, table)
    if step.action is Action.REINITIALIZE and table.is_populated:
        timeout = engine.timeouts.current
        end_repairs(session, table, compilation, timeout.left if timeout is not None else None)
    if compilation.compiled is None:
        engine.timeouts.note("evaluating the query in PostgreSQL")
        return recompute(session, table, compilation)
    if step.action is Action.FULL:
        return _recompute_with_state(engine, session, step)
    if step.action is not Action.DIFFERENTIAL:
        is_large = is_large_load(engine, session, compilation)
        load_auxiliaries(engine, session, table, compilation.compiled.auxiliaries, is_large=is_large)
        with open_run(engine, session, table, compilation.compiled.initial()) as run:
            return load(run, is_large=is_large)
    changed = frozenset(window.relation for window in step.windows)
    follow_auxiliaries(engine, session, table, compilation.compiled.auxiliaries, changed)
    program = step.program
    if program is None:
        return NOTHING
    with open_run(engine, session, table, program) as run:
        return follow(run, is_large=is_large_window(engine, step.windows))


def _recompute_with_state(engine: Engine, session: Session, step: Step) -> Effect:
    """Let PostgreSQL compute all rows and the state of the table; if they are too many, Spark's tasks do."""
    table, compiled = step.table, step.compilation.compiled
    assert compiled is not None
    engine.timeouts.note("evaluating the query in PostgreSQL")
    try:
        recompute_auxiliaries(engine, session, table, compiled.auxiliaries)
        with open_run(engine, session, table, compiled.recomputation()) as run:
            return recompute_all(run)
    except TooMuch:
        load_auxiliaries(engine, session, table, compiled.auxiliaries, is_large=True)
        with open_run(engine, session, table, compiled.initial()) as run:
            return load(run, is_large=True)


def recompute(session: Session, table: StreamTable, compilation: Compilation) -> Effect:
    """Evaluate the query in PostgreSQL, in the snapshot of the session, and apply the difference."""
    columns = [Output(name, pg_type.text, "", pg_type.domain) for name, pg_type in compilation.outputs]
    staging = create_query_staging(session.write, table.id, columns)
    target = sql.Identifier(staging.schema, staging.name)
    query = sql.SQL(cast(Any, compilation.answer.rstrip().removesuffix(";")))
    session.write.execute(sql.SQL("truncate {}").format(target))
    with session.phases.measure(Phase.COMPUTE), evaluating_query(session.write, table.settings):
        session.write.execute(sql.SQL("insert into {} {}").format(target, query))
    recording = open_recording(session, table)
    stored = stored_table(table.name, table.match_columns, columns, None, recording)
    with session.phases.measure(Phase.APPLY):
        applied = replace_from_query_staging(session.write, stored, staging)
        session.write.execute(sql.SQL("truncate {}").format(target))
    return Effect(applied, applied.inserted + applied.deleted)
