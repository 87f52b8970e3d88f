"""Follows and loads the auxiliary results of a stream table, before the table itself.

Each is written as if it were a stream table of its own: its rows, the state of its groups, and the change of
this refresh, which the next result and the query read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from pgtrickle.apply.auxiliary_storage import (
    analyze_auxiliary,
    create_auxiliary,
    drop_auxiliaries,
    forget_moves,
    index_auxiliary,
)
from pgtrickle.apply.storage import create_storage
from pgtrickle.model.errors import Diverged
from pgtrickle.model.hints import call
from pgtrickle.model.phases import Phase
from pgtrickle.model.stream_table import RelationId, StreamTable, StreamTableId
from pgtrickle.plan.programs import Auxiliary
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.execute.compute import open_run
from pgtrickle.refresh.execute.differential import follow, load, recompute_all
from pgtrickle.refresh.session import Session


def follow_auxiliaries(
    engine: Engine,
    session: Session,
    table: StreamTable,
    auxiliaries: Sequence[Auxiliary],
    changed: frozenset[RelationId],
) -> None:
    """Apply the change of the window to each auxiliary result that it reaches."""
    if not auxiliaries:
        return
    with session.phases.measure(Phase.APPLY):
        forget_moves(session.write, [auxiliary.source for auxiliary in auxiliaries])
    for auxiliary in auxiliaries:
        own = changed & auxiliary.reads
        program = auxiliary.programs.program(own) if own else None
        if program is None:
            continue
        with (
            _blaming(table),
            open_run(engine, session, _as_table(session, table, auxiliary), program) as run,
        ):
            follow(run, is_large=False)
        changed |= {auxiliary.source.relation}


def load_auxiliaries(
    engine: Engine,
    session: Session,
    table: StreamTable,
    auxiliaries: Sequence[Auxiliary],
    *,
    is_large: bool,
) -> None:
    """Create the tables of all auxiliary results again, and fill them."""
    for auxiliary, stand_in in _created_again(session, table, auxiliaries):
        with open_run(engine, session, stand_in, auxiliary.programs.initial()) as run:
            load(run, is_large=is_large)


def recompute_auxiliaries(
    engine: Engine, session: Session, table: StreamTable, auxiliaries: Sequence[Auxiliary]
) -> None:
    """Create the tables of all auxiliary results again, and let PostgreSQL fill them; may raise TooMuch."""
    for auxiliary, stand_in in _created_again(session, table, auxiliaries):
        program = auxiliary.programs.recomputation()
        with open_run(engine, session, stand_in, program) as run:
            create_storage(session.write, stand_in.id, program.target)
            recompute_all(run)


def _created_again(
    session: Session, table: StreamTable, auxiliaries: Sequence[Auxiliary]
) -> Iterator[tuple[Auxiliary, StreamTable]]:
    """Each auxiliary result with its empty table, for the caller to fill before the next one is created."""
    if not auxiliaries:
        return
    drop_auxiliaries(session.write, table.id)
    for auxiliary in auxiliaries:
        create_auxiliary(session.write, auxiliary.source)
        yield auxiliary, _as_table(session, table, auxiliary)
        index_auxiliary(session.write, auxiliary.source, auxiliary.indexes)
        analyze_auxiliary(session.write, auxiliary.source)


def _as_table(session: Session, table: StreamTable, auxiliary: Auxiliary) -> StreamTable:
    """An auxiliary result as what a run writes to, with the frontier and the settings of its stream table."""
    row = session.write.execute(
        "select pgtrickle_internal.match_columns(%s::regclass)", (auxiliary.source.table.sql,)
    ).fetchone()
    assert row is not None
    return replace(
        table,
        id=StreamTableId(auxiliary.source.relation),
        name=auxiliary.source.table,
        match_columns=tuple(row[0]),
        is_append_only=False,
        feed=None,
    )


@contextmanager
def _blaming(table: StreamTable) -> Iterator[None]:
    """Name the stream table if what is kept beside it does not fit its change."""
    try:
        yield
    except Diverged as error:
        raise Diverged(
            f"an inner result that is kept for {table.name} does not hold the rows that its changes expect",
            hint=f"to load it again, run {call('repair_stream_table', table.name)}",
            rows=error.rows,
        ) from error
