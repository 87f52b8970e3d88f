"""Carries out the step of one stream table: follow the change, load all rows, or let PostgreSQL evaluate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, cast

from pgtrickle.apply.apply import replace_from_query_staging
from pgtrickle.apply.load import can_be_filled, fill
from pgtrickle.apply.storage import create_query_staging, create_storage
from pgtrickle.apply.stored_table import StoredTable, stored_table
from pgtrickle.catalog.row_index import finish_row_index, lock_for_row_index
from pgtrickle.catalog.trust import lock_for_apply
from pgtrickle.changes.memory import TooMuch
from pgtrickle.model.phases import Phase
from pgtrickle.model.stream_table import Action, StreamTable
from pgtrickle.plan.program import Output, RowsTarget
from pgtrickle.postgres.connection import sql
from pgtrickle.refresh.compilation import Compilation
from pgtrickle.refresh.decide.action import Step
from pgtrickle.refresh.decide.sizes import is_large_load, is_large_window, loads_in_postgres
from pgtrickle.refresh.divergence import end_repairs
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.execute.auxiliary import follow_auxiliaries, load_auxiliaries, recompute_auxiliaries
from pgtrickle.refresh.execute.compute import ProgramRun, open_run
from pgtrickle.refresh.execute.differential import follow, load, recompute_all
from pgtrickle.refresh.execute.feed import open_recording
from pgtrickle.refresh.faults import unfollowable_values
from pgtrickle.refresh.outcome import NOTHING, Effect
from pgtrickle.refresh.session import Session, evaluating_query

IN_POSTGRES: Final = "; evaluated by PostgreSQL, since Spark runs on one machine"
TOO_MUCH: Final = "; spread over tasks, since the driver may not hold all rows"
NOT_INDEXED: Final = "; the table has no index on whole rows, so refreshes may be slow"


def execute(engine: Engine, session: Session, step: Step) -> Effect:
    """Carry out what was decided, for this table alone."""
    table = step.table
    lock_for_apply(session.write, table)
    if step.action is not Action.REINITIALIZE:
        return _carry_out(engine, session, step)
    lock_for_row_index(session.write, table)
    if table.is_populated:
        timeout = engine.timeouts.current
        end_repairs(session, table, step.compilation, timeout.left if timeout is not None else None)
    effect = _carry_out(engine, session, step)
    with session.phases.measure(Phase.APPLY):
        is_indexed = finish_row_index(session.write, table)
    return effect if is_indexed else replace(effect, note=effect.note + NOT_INDEXED)


def _carry_out(engine: Engine, session: Session, step: Step) -> Effect:
    table, compilation = step.table, step.compilation
    if compilation.compiled is None or (step.action is Action.FULL and not step.computes_state):
        engine.timeouts.note("evaluating the query in PostgreSQL")
        return recompute(session, table, compilation)
    if step.action is Action.FULL:
        return _recompute_with_state(engine, session, step)
    if step.action is not Action.DIFFERENTIAL:
        if not session.can_share and loads_in_postgres(engine, session.read, compilation):
            return _load_in_postgres(engine, session, step)
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


def _load_in_postgres(engine: Engine, session: Session, step: Step) -> Effect:
    """Let PostgreSQL evaluate the query where it writes the rows and the state of the table."""
    table, compilation = step.table, step.compilation
    assert compilation.compiled is not None
    target = compilation.compiled.initial().target
    create_storage(session.write, table.id, target)
    stored = stored_table(table.name, table.match_columns, target.outputs, None)
    # an answer over our copies has base types in place of domains
    is_plain = isinstance(target, RowsTarget) and table.feed is None and not compilation.copied_sources
    if is_plain and can_be_filled(session.write, stored):
        effect = _recompute_with_state(engine, session, step, lambda _: _fill(session, step, stored))
    else:
        effect = _recompute_with_state(engine, session, step)
    return replace(effect, note=IN_POSTGRES + effect.note)


def _fill(session: Session, step: Step, stored: StoredTable) -> Effect:
    """Insert the answer of the query into the empty stream table."""
    settings, query = step.table.settings, _answer(step.compilation)
    with (
        session.phases.measure(Phase.COMPUTE),
        unfollowable_values(),
        evaluating_query(session.write, settings),
    ):
        return Effect(fill(session.write, stored, query), 0)


def _recompute_with_state(
    engine: Engine, session: Session, step: Step, compute: Callable[[ProgramRun], Effect] = recompute_all
) -> Effect:
    """Let PostgreSQL compute all rows and the state of the table; if they are too many, Spark's tasks do."""
    table, compiled = step.table, step.compilation.compiled
    assert compiled is not None
    engine.timeouts.note("evaluating the query in PostgreSQL")
    program = compiled.recomputation()
    if table.state_is_behind:
        # a table that was never followed has no state yet
        create_storage(session.write, table.id, program.target)
    try:
        recompute_auxiliaries(engine, session, table, compiled.auxiliaries)
        with open_run(engine, session, table, program) as run:
            return compute(run)
    except TooMuch:
        load_auxiliaries(engine, session, table, compiled.auxiliaries, is_large=True)
        with open_run(engine, session, table, compiled.initial()) as run:
            return replace(load(run, is_large=True), note=TOO_MUCH)


def recompute(session: Session, table: StreamTable, compilation: Compilation) -> Effect:
    """Evaluate the query in PostgreSQL, in the snapshot of the session, and apply the difference."""
    columns = [Output(name, pg_type.text, "", pg_type.domain) for name, pg_type in compilation.outputs]
    staging = create_query_staging(session.write, table.id, columns)
    target = sql.Identifier(staging.schema, staging.name)
    query = _answer(compilation)
    session.write.execute(sql.SQL("truncate {}").format(target))
    with session.phases.measure(Phase.COMPUTE), evaluating_query(session.write, table.settings):
        session.write.execute(sql.SQL("insert into {} {}").format(target, query))
    recording = open_recording(session, table)
    key = compilation.compiled.recomputation().target.key if compilation.compiled else None
    stored = stored_table(table.name, table.match_columns, columns, key, recording)
    with session.phases.measure(Phase.APPLY):
        applied = replace_from_query_staging(session.write, stored, staging)
        session.write.execute(sql.SQL("truncate {}").format(target))
    return Effect(applied, applied.inserted + applied.deleted)


def _answer(compilation: Compilation) -> sql.SQL:
    """The query, for a statement without parameters."""
    return sql.SQL(cast(Any, compilation.answer.rstrip().removesuffix(";")))
