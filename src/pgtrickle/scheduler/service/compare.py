"""Compares a stream table with PostgreSQL's own result of its query, in one snapshot."""

from __future__ import annotations

import time
from collections.abc import Sequence

from pgtrickle.catalog.repairs import Cause
from pgtrickle.catalog.trust import lock_for_apply
from pgtrickle.model.comparison import ComparisonResult, UncomparedTable, VerifiedTable
from pgtrickle.model.errors import Diverged
from pgtrickle.model.hints import call
from pgtrickle.model.stream_table import StreamTable, StreamTableId
from pgtrickle.postgres.connection import Connection, sql
from pgtrickle.refresh.divergence import difference, note_divergence
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.session import evaluating_query
from pgtrickle.refresh.story import Failure, NotFollowed, Result, bring_up_to_date
from pgtrickle.scheduler.policy.graph import Graph
from pgtrickle.scheduler.policy.units import groups


def compare(engine: Engine, table: StreamTable, graph: Graph, seconds: float | None) -> ComparisonResult:
    """Compare one stream table by multiset equality.

    Pending changes are applied first, in the same transaction, so that both sides come from one snapshot
    despite concurrent writes. `Diverged` carries the rows that differ. They are stored as evidence, and the
    next refresh loads the table again, unless its `on_divergence` is `stop`. A comparison that takes longer
    than `seconds` is canceled and raises `VerifyTimedOut`; None is no limit.
    """
    (group,) = groups((table.id,), graph)
    try:
        return _verify_table(engine, table, group, seconds)
    except NotFollowed as reason:
        return UncomparedTable(table.name, _skip_reason(engine, reason.result))


def _verify_table(
    engine: Engine, table: StreamTable, group: Sequence[StreamTableId], seconds: float | None
) -> VerifiedTable:
    engine.attached.compare(group)
    try:
        with (
            engine.timeouts.comparing(table, seconds) as limit,
            bring_up_to_date(engine, group, table.name) as connection,
        ):
            query = engine.compilation(connection, table).answer
            limit.doing = "evaluating the query in PostgreSQL"
            return _compare(connection, table, query)
    except Diverged as error:
        _keep_evidence(engine, table, error)
        raise


def _skip_reason(engine: Engine, result: Result) -> str:
    """Why a table was not compared. A failure is raised as the error of the table that failed."""
    if not isinstance(result, Failure):
        return result.reason
    if isinstance(result.error, Diverged):
        _keep_evidence(engine, result.table, result.error)
    raise result.error


def _keep_evidence(engine: Engine, table: StreamTable, error: Diverged) -> None:
    with engine.connection() as connection:
        note_divergence(connection, table, error, Cause.VERIFIED, "verify")
        connection.commit()


def _compare(connection: Connection, table: StreamTable, query: str) -> VerifiedTable:
    clock = time.perf_counter()
    # without pending changes, no refresh has checked that the table runs no code of other roles
    lock_for_apply(connection, table)
    with evaluating_query(connection, table.settings):
        found = difference(connection, table, query)
    if found:
        raise Diverged(
            f"{table.name} does not equal its query: {'; '.join(found.rows)}",
            hint=f"to load it again, run {call('repair_stream_table', table.name)}",
            rows=found.rows,
        )
    count = connection.execute(
        sql.SQL("select count(*) from {}").format(sql.Identifier(table.name.schema, table.name.name))
    ).fetchone()
    assert count is not None
    return VerifiedTable(table.name, count[0], (time.perf_counter() - clock) * 1000)
