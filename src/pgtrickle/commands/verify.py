"""Comparing stream tables with PostgreSQL's own answer to their query, in one snapshot."""

from __future__ import annotations

import time
from dataclasses import dataclass

from pgtrickle.catalog.install import check_original
from pgtrickle.catalog.repairs import Cause
from pgtrickle.catalog.tables import find, stream_tables
from pgtrickle.model.errors import Diverged
from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import StreamTable
from pgtrickle.postgres.connection import Connection, sql
from pgtrickle.refresh.differences import difference
from pgtrickle.refresh.diverging import note_divergence
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.limits import USUAL_SECONDS
from pgtrickle.refresh.session import evaluating_query
from pgtrickle.refresh.story import brought_up_to_date
from pgtrickle.scheduler.definitions import graph_of
from pgtrickle.scheduler.units import groups


@dataclass(frozen=True, slots=True)
class Verified:
    """A stream table that equals its query."""

    name: RelationName
    rows: int
    milliseconds: float


def verify(engine: Engine, name: str | None, seconds: float | None = USUAL_SECONDS) -> list[Verified]:
    """Compare one stream table, or all that are populated, as bags and both ways.

    One that takes longer than `seconds` is cancelled and raises `VerifyTimedOut`; None is no limit.

    What is pending is followed first, in the same transaction, so that both sides are of one
    snapshot whoever writes meanwhile. Raises with the rows that differ: these are kept as evidence, and the
    next refresh loads the table anew, unless it is to stop on divergence.
    """
    with engine.connection() as connection:
        check_original(connection)
        tables = (find(connection, name),) if name else stream_tables(connection)
        graph = graph_of(connection)
    found = []
    for table in tables:
        if table.is_populated:
            (group,) = groups((table.id,), graph)
            try:
                with (
                    engine.limits.comparing(table, seconds) as limit,
                    brought_up_to_date(engine, group) as connection,
                ):
                    query = engine.compiled(connection, table).answer
                    limit.doing = "evaluating the query in PostgreSQL"
                    found.append(_compared(connection, table, query))
            except Diverged as error:
                _keep_evidence(engine, table, error)
                raise
    return found


def _keep_evidence(engine: Engine, table: StreamTable, error: Diverged) -> None:
    with engine.connection() as connection:
        note_divergence(connection, table, error, Cause.VERIFIED, "verify")
        connection.commit()


def _compared(connection: Connection, table: StreamTable, query: str) -> Verified:
    clock = time.perf_counter()
    with evaluating_query(connection, table.settings):
        found = difference(connection, table, query)
    if found:
        raise Diverged(
            f"{table.name} does not equal its query: {'; '.join(found.rows)}",
            hint=f"have it loaded anew: pgtrickle repair {table.name}",
            rows=found.rows,
        )
    count = connection.execute(
        sql.SQL("select count(*) from {}").format(sql.Identifier(table.name.schema, table.name.name))
    ).fetchone()
    assert count is not None
    return Verified(table.name, count[0], (time.perf_counter() - clock) * 1000)
