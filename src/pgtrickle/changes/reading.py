"""The reads of a program as SQL, and as Arrow tables under the snapshot of a refresh."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from pgtrickle.changes.keys import condition, has_keys, trusted
from pgtrickle.changes.window import buffers, within
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.source import Source
from pgtrickle.plan.program import WEIGHT, Read, ReadKind
from pgtrickle.postgres.arrow import arrow_schema, read_arrow
from pgtrickle.postgres.connection import Connection, sql

_CHANGE = sql.Identifier("weight of the change")
"""A name that no column of a source is likely to have: a source may have a column `weight`."""

Connections = Callable[[Read], Connection]
Frontiers = Callable[[Source], Frontier]


def read_all(
    reads: tuple[Read, ...], connection: Connections, since: Frontiers, given: Mapping[str, pa.Table]
) -> dict[str, pa.Table]:
    """Read one after the other, each restricted by the keys that the ones before it found."""
    tables = dict(given)
    for read in reads:
        tables[read.name] = _table(read, connection(read), since, tables)
    return {read.name: tables[read.name] for read in reads}


def _table(read: Read, connection: Connection, since: Frontiers, tables: Mapping[str, pa.Table]) -> pa.Table:
    has_weight = read.kind is ReadKind.CHANGES
    if any(not has_keys(lookup, tables) for lookup in read.lookups):
        return arrow_schema(read.fields, has_weight=has_weight).empty_table()
    query = read_query(read, since, tables)
    return read_arrow(connection, query, read.fields, has_weight=has_weight)


def read_query(read: Read, since: Frontiers, tables: Mapping[str, pa.Table] | None) -> sql.Composed:
    """The SQL of a read; without tables its lookups are left out and it reads everything."""
    conditions: list[sql.Composable] = []
    if read.condition:
        conditions.append(sql.SQL("({})").format(trusted(read.condition)))
    for lookup in read.lookups if tables is not None else ():
        assert tables is not None
        if (found := condition(lookup, tables)) is not None:
            conditions.append(found)
    return _select(read, since, conditions)


def _select(read: Read, since: Frontiers, conditions: list[sql.Composable]) -> sql.Composed:
    fields = [
        sql.SQL("{} as {}").format(trusted(field.carrier.carried(expression)), sql.Identifier(field.name))
        for field, expression in zip(read.fields, read.expressions, strict=True)
    ]
    if read.kind is ReadKind.CHANGES:
        return _changes(read, since, conditions, fields)
    return sql.SQL("select {} from {} as t{}").format(
        sql.SQL(", ").join(fields), _relation(read), _where(conditions)
    )


def _changes(
    read: Read, since: Frontiers, conditions: list[sql.Composable], fields: list[sql.Composed]
) -> sql.Composed:
    assert read.source is not None
    positions = sql.SQL(", ").join(sql.SQL(str(n + 1)) for n in range(len(fields)))
    return sql.SQL(
        "select {fields}, sum(t.{change})::bigint as {weight} from ({window}) as t{where}"
        " group by {positions} having sum(t.{change}) <> 0"
    ).format(
        fields=sql.SQL(", ").join(fields),
        weight=sql.Identifier(WEIGHT),
        change=_CHANGE,
        window=_window(read, since(read.source)),
        where=_where([*conditions, sql.SQL("t.{} <> 0").format(_CHANGE)]),
        positions=positions,
    )


def _window(read: Read, frontier: Frontier) -> sql.Composed:
    """The change rows of a source under its own column names, both buffers together."""
    assert read.source is not None
    used = [column for column in read.source.columns if column.name in read.uses]
    columns = [
        sql.SQL("{} as {}").format(sql.Identifier(f"c{column.number}"), sql.Identifier(column.name))
        for column in used
    ]
    arms = [
        sql.SQL("select {} from {} where {}").format(
            sql.SQL(", ").join([*columns, sql.SQL("weight as {}").format(_CHANGE)]),
            sql.Identifier(b.schema, b.name),
            within(frontier),
        )
        for b in buffers(read.source.relation)
    ]
    return sql.SQL(" union all ").join(arms)


def _relation(read: Read) -> sql.Composable:
    if read.source is not None:
        return sql.Identifier(read.source.name.schema, read.source.name.name)
    assert read.query is not None
    return sql.SQL("({})").format(trusted(read.query))


def _where(conditions: list[sql.Composable]) -> sql.Composable:
    return sql.SQL(" where {}").format(sql.SQL(" and ").join(conditions)) if conditions else sql.SQL("")
