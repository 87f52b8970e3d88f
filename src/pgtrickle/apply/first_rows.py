"""The first rows of an ordered result: a change that lies beyond the horizon does not reach them.

state@new = (state@old + Δ) up to the horizon;  Δtable = cut(state@new) − table
"""

from __future__ import annotations

from pgtrickle.apply.composing import aliased, identifier, listed, numbered, relation, trusted
from pgtrickle.apply.finals import outputs_of, restored, step
from pgtrickle.apply.ordered_state import (
    beyond,
    horizon_table,
    ordered_table,
    ordering,
    shown,
    state_columns,
    state_of,
)
from pgtrickle.apply.rows import Rows, carried_columns, relation_of
from pgtrickle.apply.writing import Applied, Stored, write
from pgtrickle.plan.program import FirstRows
from pgtrickle.plan.reads import WEIGHT
from pgtrickle.postgres.connection import Connection, sql


def apply_first_rows(
    connection: Connection, stored: Stored, state_id: int, target: FirstRows, rows: Rows
) -> Applied:
    """Add a change to the state, ask for more rows if too few are left, and show the cut."""
    _merge(connection, state_id, target, rows)
    if _is_short(connection, state_id, target):
        fill_state(connection, state_id, target)
    return show(connection, stored, state_id, target)


def show(connection: Connection, stored: Stored, state_id: int, target: FirstRows) -> Applied:
    """Let the stream table hold the cut of the state."""
    cut = shown(target, relation(ordered_table(state_id)))
    weighted = sql.SQL("{} union all {}").format(cut, stored.rows)
    return write(connection, stored, (), weighted, None, {})


def fill_state(connection: Connection, state_id: int, target: FirstRows) -> None:
    """Let the state hold the first rows, and the horizon the last of them if there are more."""
    state, horizon = relation(ordered_table(state_id)), relation(horizon_table(state_id))
    connection.execute(sql.SQL("truncate table {}, {}").format(state, horizon), {})
    names = listed(identifier(column.name) for column in state_columns(target))
    values = [trusted(output.sql) for output in (*target.outputs, *target.hidden)]
    rows = sql.SQL("select {} from ({}) x").format(
        listed(aliased(values, [identifier(c.name) for c in state_columns(target)])), trusted(target.query)
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
        listed([*aliased(restored(target.fields, "r"), names), sql.SQL("r.{}").format(weight)])
    )
    outputs = (*target.outputs, *target.hidden)
    changed = outputs_of(outputs, None, scope, sql.SQL("x.{}").format(weight))
    columns = [identifier(column.name) for column in state_columns(target)]
    renamed = sql.SQL("select {}, d.weight from ({}) d").format(
        listed(aliased(numbered("o", len(outputs), "d"), columns)), changed
    )
    reached = sql.SQL("select {}, c.weight from ({}) c where not exists (select from {} h where {})").format(
        listed(
            aliased([trusted(f"c.c{n}") for n in range(1, len(outputs) + 1)], numbered("o", len(outputs)))
        ),
        renamed,
        relation(horizon_table(state_id)),
        beyond(target, "c", "h"),
    )
    write(
        connection, state_of(state_id, target), (step("given", given.query),), reached, None, given.parameters
    )


def _is_short(connection: Connection, state_id: int, target: FirstRows) -> bool:
    """Whether the cut may lack rows that are beyond the horizon."""
    wanted = target.cut.offset + (target.cut.limit or 0)
    row = connection.execute(
        sql.SQL("select exists (select from {}) and (select count(*) from {}) < {}").format(
            relation(horizon_table(state_id)), relation(ordered_table(state_id)), sql.Literal(wanted)
        )
    ).fetchone()
    assert row is not None
    return bool(row[0])
