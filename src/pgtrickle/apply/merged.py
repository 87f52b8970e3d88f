"""Groups whose state takes in the change of each group.

Δresult = final(state@after) − final(state@before)
"""

from __future__ import annotations

from pgtrickle.apply.composing import aliased, identifier, image, listed, numbered, relation
from pgtrickle.apply.finals import Finals, outputs_of
from pgtrickle.apply.merging import merging_steps, state_names
from pgtrickle.apply.ordered_state import shown, state_columns
from pgtrickle.apply.rows import Rows
from pgtrickle.apply.states import state_effects
from pgtrickle.apply.storage import state_table
from pgtrickle.apply.writing import Applied, Stored, diverged, write
from pgtrickle.model.names import RelationName
from pgtrickle.plan.program import MergedGroups
from pgtrickle.postgres.connection import Connection, sql


def merged_finals(state_id: int, target: MergedGroups, rows: Rows, rescanned: Rows | None) -> Finals:
    """Merge the change into the state, and give the change of the groups' final rows."""
    steps, parameters = merging_steps(state_id, target, rows, rescanned)
    names = state_names(target)
    keys, slots = numbered("k", len(target.keys), "m"), len(target.slots)
    before = [*keys, sql.SQL("m.before"), *numbered("b", slots, "m")]
    after = [*keys, sql.SQL("m.after"), *numbered("a", slots, "m")]
    lives = "m.after > 0" if target.keys else "true"
    groups = sql.SQL("(select {} from merging m where {}) x")
    then = groups.format(listed(aliased(before, names)), sql.SQL("m.tid is not null"))
    now = groups.format(listed(aliased(after, names)), sql.SQL(lives))
    return Finals(
        steps=(*steps, *state_effects(state_id, names, before, after, groups="merging", lives=lives)),
        added=outputs_of(target.outputs, target.having, now, sql.SQL("1")),
        removed=outputs_of(target.outputs, target.having, then, sql.SQL("-1")),
        problems=_problems(keys),
        parameters=parameters,
    )


def show_first(connection: Connection, stored: Stored, state_id: int, target: MergedGroups) -> Applied:
    """Let the stream table hold the first of the groups in the state."""
    outputs = (*target.outputs, *target.hidden)
    state = sql.SQL("{} x").format(relation(state_table(state_id)))
    finals = outputs_of(outputs, target.having, state, sql.SQL("1"))
    columns = [identifier(column.name) for column in state_columns(target)]
    rows = sql.SQL("(select {} from ({}) f)").format(
        listed(aliased(numbered("o", len(outputs), "f"), columns)), finals
    )
    weighted = sql.SQL("{} union all {}").format(shown(target, rows), stored.rows)
    return write(connection, stored, (), weighted, None, {})


def merge_only(connection: Connection, table: RelationName, finals: Finals) -> None:
    """Let the state take in the change, without showing it yet."""
    statement = sql.SQL("with {}, problems as ({}) select array_agg(problem) from problems").format(
        listed(finals.steps), finals.problems or sql.SQL("select null::text as problem where false")
    )
    row = connection.execute(statement, finals.parameters).fetchone()
    assert row is not None
    if row[0]:
        raise diverged(table, row[0][:3])


def _problems(keys: list[sql.SQL]) -> sql.Composed:
    return sql.SQL(
        "select case when m.after < 0 then 'a count of ' || m.after else 'an unknown extremum' end"
        " || ' in group ' || {}::text as problem"
        " from merging m where m.after < 0 or m.must_rescan and m.is_rescanned is null"
    ).format(image(keys))
