"""Comparing stream tables with PostgreSQL's own answer to their query, in one snapshot."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from pgtrickle.catalog.tables import find, stream_tables
from pgtrickle.model.errors import Diverged
from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import StreamTable
from pgtrickle.postgres.connection import Connection, sql
from pgtrickle.postgres.statements import load
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.session import evaluating_query
from pgtrickle.refresh.story import brought_up_to_date
from pgtrickle.scheduler.definitions import graph_of
from pgtrickle.scheduler.units import groups

SHOWN = 10


@dataclass(frozen=True, slots=True)
class Verified:
    """A stream table that equals its query."""

    name: RelationName
    rows: int
    milliseconds: float


def verify(engine: Engine, name: str | None) -> list[Verified]:
    """Compare one stream table, or all that are populated, as bags and both ways.

    What is pending is followed first, in the same transaction, so that both sides are of one
    snapshot whoever writes meanwhile. Raises with the rows that differ; then nothing is kept.
    """
    with engine.connection() as connection:
        tables = (find(connection, name),) if name else stream_tables(connection)
        graph = graph_of(connection)
    found = []
    for table in tables:
        if table.is_populated:
            (group,) = groups((table.id,), graph)
            with brought_up_to_date(engine, group) as connection:
                found.append(_compared(connection, table, engine.compiled(connection, table).answer))
    return found


def _compared(connection: Connection, table: StreamTable, query: str) -> Verified:
    clock = time.perf_counter()
    columns = _columns(connection, table)
    comparison = sql.SQL(cast(Any, load("pgtrickle.commands", "sql/compare.sql"))).format(
        table=sql.Identifier(table.name.schema, table.name.name),
        query=sql.SQL(cast(Any, query.rstrip().removesuffix(";"))),
        named=sql.SQL(", ").join(map(sql.Identifier, columns)),
        compared=sql.SQL(", ").join(sql.SQL(cast(Any, match)) for match in table.match_columns),
        shown=sql.Literal(SHOWN),
    )
    with evaluating_query(connection, table.settings):
        rows = connection.execute(comparison).fetchall()
    if rows:
        raise _diverged(table, rows)
    count = connection.execute(
        sql.SQL("select count(*) from {}").format(sql.Identifier(table.name.schema, table.name.name))
    ).fetchone()
    assert count is not None
    return Verified(table.name, count[0], (time.perf_counter() - clock) * 1000)


def _columns(connection: Connection, table: StreamTable) -> list[str]:
    rows = connection.execute(
        "select attname from pg_attribute where attrelid = %s and attnum > 0 and not attisdropped"
        " order by attnum",
        (table.relation,),
    ).fetchall()
    return [row[0] for row in rows]


def _diverged(table: StreamTable, rows: Sequence[tuple[Any, ...]]) -> Diverged:
    shown = "; ".join(f"{'unexpected' if side == '+' else 'missing'} {row}" for side, row in rows)
    return Diverged(
        f"{table.name} does not equal its query: {shown}",
        hint=f"have it computed anew: select pgtrickle.repair_stream_table('{table.name}')",
    )
