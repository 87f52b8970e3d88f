"""The state of an ordered result: its first rows, complete up to a horizon."""

from __future__ import annotations

from pgtrickle.apply.compose import (
    STATE_SCHEMA,
    column_definition,
    comma_list,
    identifier,
    is_foreign,
    numbered_names,
    relation,
    same_value,
    trusted_sql,
    with_aliases,
)
from pgtrickle.apply.stored_table import StoredColumn, StoredTable
from pgtrickle.model.names import RelationName, quoted
from pgtrickle.plan.program import Cut, FirstRows, MergedGroups, Output
from pgtrickle.postgres.connection import Connection, sql

_ROW_INDEX = sql.SQL("""
do $body$
begin
    create index if not exists {index} on {table} (hash_record_extended(row({matches}), 0));
exception when invalid_object_definition then
    null; -- the few rows of the state are read without an index
end $body$
""")

_HASHED = frozenset(
    {"smallint", "integer", "bigint", "text", "date", "uuid", "boolean", "real", "double precision"}
    | {"timestamp without time zone", "timestamp with time zone"}
)


def ordered_table(state_id: int) -> RelationName:
    """The table that holds the first rows of a stream table."""
    return RelationName(STATE_SCHEMA, f"state_{state_id}")


def horizon_table(state_id: int) -> RelationName:
    """The table that holds the last row which the state was filled with."""
    return RelationName(STATE_SCHEMA, f"horizon_{state_id}")


def state_columns(target: FirstRows | MergedGroups) -> tuple[StoredColumn, ...]:
    """The columns of the state: shown and hidden ones, under names of our own."""
    outputs = (*target.outputs, *target.hidden)
    return tuple(_column(number, output) for number, output in enumerate(outputs, start=1))


def _column(number: int, output: Output) -> StoredColumn:
    name = f"c{number}"
    element = output.pg_type.removesuffix("[]")
    is_hashed = element in _HASHED or element.startswith(("numeric", "character varying"))
    match = quoted(name) if is_hashed else f"pgtrickle_internal.value_text({quoted(name)})"
    return StoredColumn(name, output.pg_type, match, collation=output.collation)


def state_of(state_id: int, target: FirstRows) -> StoredTable:
    """The state as a table to write to."""
    return StoredTable(ordered_table(state_id), state_columns(target), None)


def create_ordered_state(connection: Connection, state_id: int, target: FirstRows) -> None:
    """Create the state and its horizon, unless they exist."""
    columns = state_columns(target)
    table, horizon = relation(ordered_table(state_id)), relation(horizon_table(state_id))
    connection.execute(
        sql.SQL("create table if not exists {} ({})").format(
            table, comma_list(map(_column_definition, columns))
        ),
        {},
    )
    connection.execute(
        sql.SQL("create table if not exists {} ({})").format(
            horizon, comma_list(map(_column_definition, columns))
        ),
        {},
    )
    connection.execute(
        _ROW_INDEX.format(
            index=trusted_sql(quoted(f"state_{state_id}_row")),
            table=table,
            matches=comma_list(trusted_sql(c.match) for c in columns),
        )
    )


def _column_definition(column: StoredColumn) -> sql.Composed:
    return column_definition(column.name, column.pg_type, column.collation)


def ordering(target: FirstRows | MergedGroups, alias: str) -> sql.Composed:
    """The order of the result, over the columns of the state."""
    assert target.cut is not None
    parts = [
        sql.SQL("{}.{}{} nulls {}").format(
            sql.SQL(alias),
            identifier(_hidden_name(target, number)),
            sql.SQL(" desc" if descending else ""),
            sql.SQL("first" if nulls_first else "last"),
        )
        for number, descending, nulls_first in target.cut.order
    ]
    return comma_list(parts)


def _hidden_name(target: FirstRows | MergedGroups, number: int) -> str:
    return f"c{len(target.outputs) + number + 1}"


def is_beyond(target: FirstRows, row: str, horizon: str) -> sql.Composable:
    """The condition that a row comes after the horizon, so that the state may not have it."""
    condition: sql.Composable = sql.SQL("false")
    for number, descending, nulls_first in reversed(target.cut.order):
        ours = trusted_sql(f"{row}.{quoted(_hidden_name(target, number))}")
        theirs = trusted_sql(f"{horizon}.{quoted(_hidden_name(target, number))}")
        pg_type = target.hidden[number].pg_type
        order = "{} < {}" if descending else "{} > {}"
        condition = sql.SQL("({} or ({} and {}))").format(
            _is_after(ours, theirs, _compare(order, ours, theirs, pg_type), nulls_first=nulls_first),
            same_value(ours, theirs, pg_type),
            condition,
        )
    return condition


def _compare(order: str, ours: sql.SQL, theirs: sql.SQL, pg_type: str) -> sql.Composed:
    """The comparison of two values by the default order of their type; null unless both are there."""
    if not is_foreign(pg_type):
        return sql.SQL(order).format(ours, theirs)
    records = [sql.SQL("row({})::record").format(value) for value in (ours, theirs)]
    return sql.SQL("case when {} is not null and {} is not null then {} end").format(
        ours, theirs, sql.SQL(order).format(*records)
    )


def _is_after(ours: sql.SQL, theirs: sql.SQL, greater: sql.Composed, *, nulls_first: bool) -> sql.Composed:
    null, other = (theirs, ours) if nulls_first else (ours, theirs)
    return sql.SQL("(coalesce({}, false) or ({} is null and {} is not null))").format(greater, null, other)


def cut_rows(target: FirstRows | MergedGroups, rows: sql.Composable) -> sql.Composed:
    """The cut of a relation that has the columns of the state, as `o1 … on, weight`."""
    assert target.cut is not None
    count, cut = len(target.outputs), target.cut
    names = [identifier(f"c{number}") for number in range(1, count + 1)]
    return sql.SQL("select {}, 1 as weight from (select * from {} s order by {}{}{}) s").format(
        comma_list(with_aliases(names, numbered_names("o", count))),
        rows,
        _total(target),
        trusted_sql(f" offset {cut.offset}" if cut.offset else ""),
        _fetch(cut, cut.limit),
    )


def _total(target: FirstRows | MergedGroups) -> sql.Composed:
    """The order with ties broken by the whole row, so that a repeated cut gives the same rows."""
    order = ordering(target, "s")
    if target.cut is None or target.cut.has_ties:
        return order
    tie = sql.SQL("row({})::text").format(comma_list(identifier(c.name) for c in state_columns(target)))
    return comma_list([order, tie] if target.cut.order else [tie])


def _fetch(cut: Cut, limit: int | None) -> sql.SQL:
    ties = "with ties" if cut.has_ties else "only"
    return trusted_sql(f" fetch first {limit} rows {ties}" if limit is not None else "")
