"""One stream table in a session: see what changed, decide, carry it out, and write it down."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from pgtrickle.apply.writing import Applied
from pgtrickle.catalog.dependencies import changed
from pgtrickle.catalog.outcomes import Refreshed, commit_refresh, mark_reinit
from pgtrickle.catalog.trust import lock_for_apply
from pgtrickle.changes.window import SourceWindow
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.source import Source, SourceKind
from pgtrickle.model.stream_table import Action, RefreshOutcome, StreamTable
from pgtrickle.postgres.preparing import prepared_statements
from pgtrickle.refresh.announcing import announce_completed
from pgtrickle.refresh.blaming import Altered
from pgtrickle.refresh.choosing import chosen, note, strategy_of
from pgtrickle.refresh.comparing import is_behind
from pgtrickle.refresh.compiling import Compilation
from pgtrickle.refresh.differential import Effect, fill, follow
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.recomputing import recompute
from pgtrickle.refresh.session import Session
from pgtrickle.refresh.sizes import is_large_load, is_large_window
from pgtrickle.refresh.windows import pending_windows, start_of


def refreshed(
    engine: Engine, session: Session, table: StreamTable, found: Compilation, initiated_by: str
) -> RefreshOutcome:
    """Read, compute and apply in the session; the caller commits."""
    with prepared_statements(session.connections, wanted=engine.prepares(table)):
        return _refreshed(engine, session, table, found, initiated_by)


def _refreshed(
    engine: Engine, session: Session, table: StreamTable, found: Compilation, initiated_by: str
) -> RefreshOutcome:
    started, clock = datetime.now(UTC), time.perf_counter()
    if changed(session.read, table.id) or is_behind(session.read, found):
        raise Altered
    _enter_settings(session, table)
    pending = pending_windows(session, table, found)
    action, reason = decided(table, found, pending)
    if action is Action.DIFFERENTIAL:
        action, opinion = chosen(engine, session, table, found, pending)
        reason += opinion
    if action is not Action.NO_DATA:
        lock_for_apply(session.write, table)
    effect = _carried_out(engine, session, table, found, pending, action)
    milliseconds = (time.perf_counter() - clock) * 1000
    outcome = RefreshOutcome(
        table.name, action, effect.applied.inserted, effect.applied.deleted, milliseconds, reason
    )
    upstream = session.upstream_frontier() if found.upstream else None
    strategy, rows = strategy_of(found, action), sum(window.rows for window in pending)
    commit_refresh(
        session.write,
        table.id,
        Refreshed(
            action=action,
            started_at=started,
            data_timestamp=session.taken_at,
            frontier=session.frontier,
            upstream=upstream,
            rows_inserted=effect.applied.inserted,
            rows_deleted=effect.applied.deleted,
            delta_rows=effect.delta_rows,
            reason=reason,
            initiated_by=initiated_by,
            change_rows=rows,
            strategy=strategy.value if strategy else None,
        ),
    )
    if strategy is not None:
        note(engine, table, strategy, rows, milliseconds, session.taken_at)

    def moved(source: Source) -> tuple[Frontier | None, Frontier | None]:
        is_upstream = source.kind is SourceKind.STREAM_TABLE
        return start_of(table, source), upstream if is_upstream else session.frontier

    engine.kept.advance(table.id, frozenset(window.relation for window in pending), moved)
    if found.state_is_behind:
        mark_reinit(session.write, table.id, found.state_is_behind)
    announce_completed(
        session.write,
        table,
        outcome,
        is_asked=initiated_by == "manual",
        is_behind=found.state_is_behind is not None,
    )
    return outcome


def decided(table: StreamTable, found: Compilation, pending: list[SourceWindow]) -> tuple[Action, str]:
    """Which action this window gets, and why."""
    if not table.is_populated:
        return Action.REINITIALIZE, "first load"
    if table.reinit_reason:
        return Action.REINITIALIZE, table.reinit_reason
    if not pending and not found.follows_clock:
        return Action.NO_DATA, "no source has changed"
    if found.compiled is None:
        return Action.FULL, found.reason
    names = {source.relation: source.name for source in found.sources}
    for window in pending:
        if window.is_truncated:
            return Action.FULL, f"{names[window.relation]} was truncated"
    rows = sum(window.rows for window in pending)
    moved = ", and the clock moved" if found.compiled.clocked else ""
    return Action.DIFFERENTIAL, f"{rows:,} change rows{moved}"


def _carried_out(
    engine: Engine,
    session: Session,
    table: StreamTable,
    found: Compilation,
    pending: list[SourceWindow],
    action: Action,
) -> Effect:
    if action is Action.NO_DATA:
        return Effect(Applied(0, 0), 0)
    if found.compiled is None:
        return recompute(session, table, found)
    if action is not Action.DIFFERENTIAL:
        is_large = is_large_load(engine, session, found)
        return fill(engine, session, table, found.compiled.initial(), is_large=is_large)
    changed = frozenset(window.relation for window in pending)
    program = found.compiled.program(changed | found.compiled.clocked)
    if program is None:
        return Effect(Applied(0, 0), 0)
    return follow(engine, session, table, program, is_large=is_large_window(engine, pending))


def _enter_settings(session: Session, table: StreamTable) -> None:
    """Evaluate as the session that created the stream table would have."""
    names, values = [list(part) for part in zip(*table.settings, strict=True)]
    for connection in session.connections:
        connection.execute(
            "select set_config(s.name, s.value, true) from unnest(%s::text[], %s::text[]) as s(name, value)",
            (names, values),
        )
