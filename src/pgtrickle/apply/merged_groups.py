"""Groups whose state is merged with the change of each group.

Δresult = final(state@after) − final(state@before)
"""

from __future__ import annotations

from pgtrickle.apply.compose import comma_list, identifier, image, numbered_names, relation, with_aliases
from pgtrickle.apply.finals import Finals, outputs_of
from pgtrickle.apply.group_state import state_effects
from pgtrickle.apply.merge import merging_steps, state_names
from pgtrickle.apply.ordered_state import cut_rows, state_columns
from pgtrickle.apply.result_rows import Rows
from pgtrickle.apply.storage import state_table
from pgtrickle.apply.stored_table import StoredTable
from pgtrickle.apply.write import Applied, divergence_error, write
from pgtrickle.model.names import RelationName
from pgtrickle.plan.program import MergedGroups
from pgtrickle.postgres.connection import Connection, sql


def merged_finals(state_id: int, target: MergedGroups, rows: Rows, rescanned: Rows | None) -> Finals:
    """Merges the change into the state, and selects the change of the final rows of the groups."""
    steps, parameters = merging_steps(state_id, target, rows, rescanned)
    names = state_names(target)
    keys, slots = numbered_names("k", len(target.keys), "m"), len(target.slots)
    before = [*keys, sql.SQL("m.before"), *numbered_names("b", slots, "m")]
    after = [*keys, sql.SQL("m.after"), *numbered_names("a", slots, "m")]
    lives = "m.after > 0" if target.keys else "true"
    groups = sql.SQL("(select {} from merging m where {}) x")
    then = groups.format(comma_list(with_aliases(before, names)), sql.SQL("m.tid is not null"))
    now = groups.format(comma_list(with_aliases(after, names)), sql.SQL(lives))
    return Finals(
        steps=(*steps, *state_effects(state_id, names, before, after, groups="merging", lives=lives)),
        added=outputs_of(target.outputs, target.having, now, sql.SQL("1")),
        removed=outputs_of(target.outputs, target.having, then, sql.SQL("-1")),
        problems=_problems(keys),
        parameters=parameters,
    )


def show_first(connection: Connection, stored: StoredTable, state_id: int, target: MergedGroups) -> Applied:
    """Make the first groups of the state the content of the stream table."""
    outputs = (*target.outputs, *target.hidden)
    state = sql.SQL("{} x").format(relation(state_table(state_id)))
    finals = outputs_of(outputs, target.having, state, sql.SQL("1"))
    columns = [identifier(column.name) for column in state_columns(target)]
    rows = sql.SQL("(select {} from ({}) f)").format(
        comma_list(with_aliases(numbered_names("o", len(outputs), "f"), columns)), finals
    )
    weighted = sql.SQL("{} union all {}").format(cut_rows(target, rows), stored.rows)
    return write(connection, stored, (), weighted, None, {})


def merge_only(connection: Connection, table: RelationName, finals: Finals) -> None:
    """Merge the change into the state only."""
    statement = sql.SQL("with {}, problems as ({}) select array_agg(problem) from problems").format(
        comma_list(finals.steps), finals.problems or sql.SQL("select null::text as problem where false")
    )
    row = connection.execute(statement, finals.parameters).fetchone()
    assert row is not None
    if row[0]:
        raise divergence_error(table, row[0][:3])


def _problems(keys: list[sql.SQL]) -> sql.Composed:
    return sql.SQL(
        "select case when m.after < 0 then 'a count of ' || m.after else 'an unknown extremum' end"
        " || ' in group ' || {}::text as problem"
        " from merging m where m.after < 0 or m.must_rescan and m.is_rescanned is null"
    ).format(image(keys))
