"""Differential or full: the choice for one window of a stream table that leaves it to us."""

from __future__ import annotations

from datetime import datetime, timedelta

from pgtrickle.changes.window import SourceWindow
from pgtrickle.model.stream_table import Action, RefreshMode, StreamTable
from pgtrickle.refresh.compiling import Compilation
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.predicting import Sample, Strategy, choice, may_try_full
from pgtrickle.refresh.session import Session
from pgtrickle.refresh.sizes import estimated_rows


def chosen(
    engine: Engine, session: Session, table: StreamTable, found: Compilation, pending: list[SourceWindow]
) -> tuple[Action, str]:
    """What a window gets that could be followed: the action, and what to say about it beside its size.

    Only AUTO leaves a choice. Full means to load all rows by the table's own program, so that what is
    kept beside the table stays right.
    """
    limits = engine.costs.limits
    is_settling = session.taken_at - table.created_at < timedelta(seconds=limits.settles_seconds)
    if table.mode is not RefreshMode.AUTO or is_settling:
        return Action.DIFFERENTIAL, ""
    known, rows = engine.costs.of(session.write, table.id), sum(window.rows for window in pending)
    found_out = choice(known, rows, session.taken_at.timestamp(), limits)
    if found_out.is_full:
        return Action.FULL, f"; {found_out.reason}"
    if may_try_full(known, rows, limits):
        there = estimated_rows(session.read, [source.table.sql for source in found.sources])
        if rows >= there:
            return Action.FULL, f"; full tried, since the sources have about {there:,} rows"
    return Action.DIFFERENTIAL, f"; {found_out.reason}" if found_out.reason else ""


def strategy_of(found: Compilation, action: Action) -> Strategy | None:
    """How an action comes about; None if nothing is computed."""
    if action in (Action.NO_DATA, Action.SKIP):
        return None
    if found.compiled is None:
        return Strategy.RECOMPUTE
    return Strategy.DELTA if action is Action.DIFFERENTIAL else Strategy.LOAD


def note(engine: Engine, table: StreamTable, done: Strategy, rows: int, took: float, at: datetime) -> None:
    """Remember how many milliseconds a refresh took."""
    is_new_start = not table.is_populated or table.reinit_reason is not None
    engine.costs.add(table.id, Sample(done, rows, took, at.timestamp(), is_new_start))
