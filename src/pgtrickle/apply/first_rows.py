"""The first rows of an ordered result; a change beyond the horizon does not affect them.

state@new = (state@old + Δ) up to the horizon;  Δtable = cut(state@new) − table
"""

from __future__ import annotations

from pgtrickle.apply.compose import (
    comma_list,
    identifier,
    numbered_names,
    relation,
    trusted_sql,
    with_aliases,
)
from pgtrickle.apply.finals import cte, outputs_of, restored_values
from pgtrickle.apply.ordered_state import (
    cut_rows,
    horizon_table,
    is_beyond,
    ordered_table,
    ordering,
    state_columns,
    state_of,
)
from pgtrickle.apply.result_rows import Rows, carried_columns, relation_of
from pgtrickle.apply.stored_table import StoredTable
from pgtrickle.apply.write import Applied, write
from pgtrickle.plan.program import FirstRows
from pgtrickle.plan.reads import WEIGHT
from pgtrickle.postgres.connection import Connection, sql


def apply_first_rows(
    connection: Connection, stored: StoredTable, state_id: int, target: FirstRows, rows: Rows
) -> Applied:
    """Add a change to the state, fill it again if too few rows are left, and show the cut."""
    _merge(connection, state_id, target, rows)
    if _is_short(connection, state_id, target):
        fill_state(connection, state_id, target)
    return show(connection, stored, state_id, target)


def show(connection: Connection, stored: StoredTable, state_id: int, target: FirstRows) -> Applied:
    """Make the cut of the state the content of the stream table."""
    cut = cut_rows(target, relation(ordered_table(state_id)))
    weighted = sql.SQL("{} union all {}").format(cut, stored.rows)
    return write(connection, stored, (), weighted, None, {})


def fill_state(connection: Connection, state_id: int, target: FirstRows) -> None:
    """Fill the state with the first rows, and the horizon with the last of them if there are more."""
    state, horizon = relation(ordered_table(state_id)), relation(horizon_table(state_id))
    connection.execute(sql.SQL("truncate table {}, {}").format(state, horizon), {})
    names = comma_list(identifier(column.name) for column in state_columns(target))
    values = [trusted_sql(output.sql) for output in (*target.outputs, *target.hidden)]
    rows = sql.SQL("select {} from ({}) x").format(
        comma_list(with_aliases(values, [identifier(c.name) for c in state_columns(target)])),
        trusted_sql(target.query),
    )
    insert = sql.SQL("insert into {} ({}) select {} from ({}) s").format(state, names, names, rows)
    if target.depth is not None:
        insert += sql.SQL(" order by {} fetch first {} rows with ties").format(
            ordering(target, "s"), sql.Literal(target.depth)
        )
    connection.execute(insert, {})
    if target.depth is not None:
        _set_horizon(connection, state_id, target)


def _set_horizon(connection: Connection, state_id: int, target: FirstRows) -> None:
    state, horizon = relation(ordered_table(state_id)), relation(horizon_table(state_id))
    connection.execute(
        sql.SQL("insert into {} select * from {} s order by {} offset {} limit 1").format(
            horizon, state, ordering(target, "s"), sql.Literal((target.depth or 1) - 1)
        )
    )


def _merge(connection: Connection, state_id: int, target: FirstRows, rows: Rows) -> None:
    given = relation_of(rows, carried_columns(target))
    names = [identifier(field.name) for field in target.fields]
    weight = identifier(WEIGHT)
    scope = sql.SQL("(select {} from given r) x").format(
        comma_list(
            [*with_aliases(restored_values(target.fields, "r"), names), sql.SQL("r.{}").format(weight)]
        )
    )
    outputs = (*target.outputs, *target.hidden)
    changed = outputs_of(outputs, None, scope, sql.SQL("x.{}").format(weight))
    columns = [identifier(column.name) for column in state_columns(target)]
    renamed = sql.SQL("select {}, d.weight from ({}) d").format(
        comma_list(with_aliases(numbered_names("o", len(outputs), "d"), columns)), changed
    )
    reached = sql.SQL("select {}, c.weight from ({}) c where not exists (select from {} h where {})").format(
        comma_list(
            with_aliases(
                [trusted_sql(f"c.c{n}") for n in range(1, len(outputs) + 1)],
                numbered_names("o", len(outputs)),
            )
        ),
        renamed,
        relation(horizon_table(state_id)),
        is_beyond(target, "c", "h"),
    )
    write(
        connection, state_of(state_id, target), (cte("given", given.query),), reached, None, given.parameters
    )


def _is_short(connection: Connection, state_id: int, target: FirstRows) -> bool:
    """Whether the cut may need rows from beyond the horizon."""
    wanted = target.cut.offset + (target.cut.limit or 0)
    row = connection.execute(
        sql.SQL("select exists (select from {}) and (select count(*) from {}) < {}").format(
            relation(horizon_table(state_id)), relation(ordered_table(state_id)), sql.Literal(wanted)
        )
    ).fetchone()
    assert row is not None
    return bool(row[0])
