"""Refreshes a stream table on request."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from pgtrickle.catalog.claims import check_not_suspended, check_startable
from pgtrickle.catalog.install import check_may_serve
from pgtrickle.catalog.tables import find
from pgtrickle.model.errors import (
    Busy,
    ConnectionFailed,
    CopiedDatabase,
    ExecutorCannotConnect,
    NotInstalled,
    PgTrickleError,
    SparkLost,
    UnknownStreamTable,
)
from pgtrickle.model.settings import MAX_CONSECUTIVE_ERRORS
from pgtrickle.model.stream_table import Action, RefreshMode, RefreshOutcome, StreamTableId
from pgtrickle.pipeline.suspects import MOST_DEATHS
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.outcome import not_refreshed
from pgtrickle.refresh.story import Failure, Result, refresh_all
from pgtrickle.scheduler.policy.units import groups
from pgtrickle.scheduler.service.failures import note_failure
from pgtrickle.scheduler.service.load_definitions import load_graph

NOT_ITS_FAULT = (Busy, ConnectionFailed, CopiedDatabase, ExecutorCannotConnect, NotInstalled, SparkLost)
"""What stops a refresh although nothing is wrong with its stream table."""
SPARK_SECONDS = 180.0
"""How long a refresh waits for Spark to restart."""


def refresh(
    engine: Engine, name: str, max_consecutive_errors: int = MAX_CONSECUTIVE_ERRORS.default
) -> RefreshOutcome:
    """Refresh a stream table to the newest snapshot, together with those that it must be consistent with."""
    with engine.connection() as connection:
        check_may_serve(connection)
        table = find(connection, name)
        check_not_suspended(table)
        check_startable(connection, table)
        graph = load_graph(connection)
    (group,) = groups((table.id,), graph)
    if table.effective_mode is not RefreshMode.FULL and not engine.is_isolated(table.id):
        # the duration of the refresh must not include the start of Spark
        engine.supply.wait(SPARK_SECONDS)
    started = datetime.now(UTC)
    try:
        results = _refresh_group(engine, group)
    except NOT_ITS_FAULT:
        raise
    except PgTrickleError as error:
        results = [Failure(table, error)]
    for result in results:
        if isinstance(result, Failure):
            with engine.connection() as connection:
                note_failure(connection, result, started, "manual", max_consecutive_errors)
            raise result.error
    for result in results:
        if isinstance(result, RefreshOutcome) and result.name == table.name:
            if result.action is Action.SKIP:
                raise not_refreshed(result)
            return result
    raise UnknownStreamTable(f"stream table {name} was dropped")


def _refresh_group(engine: Engine, group: Sequence[StreamTableId]) -> list[Result]:
    """Refresh the group and return the result of each table; start over with a new Spark if Spark dies."""
    for _ in range(MOST_DEATHS):
        try:
            return refresh_all(engine, group, initiated_by="manual", waits=True)
        except SparkLost:
            if any(map(engine.needs_spark, group)):
                engine.supply.settle(SPARK_SECONDS)
    return refresh_all(engine, group, initiated_by="manual", waits=True)
