"""Groups that PostgreSQL evaluated again, each of which replaces the stored one.

Δresult = final(groups@new ⋉ named) − final(state ⋉ named)
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
from pgtrickle.apply.finals import Finals, cte, outputs_of, restored_values
from pgtrickle.apply.group_state import same_group, state_effects
from pgtrickle.apply.result_rows import Rows, carried_columns, relation_of
from pgtrickle.apply.storage import state_table
from pgtrickle.plan.program import ReplacedGroups
from pgtrickle.plan.reads import WEIGHT
from pgtrickle.postgres.connection import sql


def replaced_finals(state_id: int, target: ReplacedGroups, rows: Rows) -> Finals:
    """Replaces groups in the state, and selects the change of their final rows."""
    given = relation_of(rows, carried_columns(target))
    names = [identifier(field.name) for field in (*target.keys, *target.values)]
    keys, values = numbered_names("k", len(target.keys), "m"), len(target.values)
    before, after = [*keys, *numbered_names("b", values, "m")], [*keys, *numbered_names("a", values, "m")]
    groups = sql.SQL("(select {} from replacing m where {}) x")
    then = groups.format(_columns(before, names), sql.SQL("m.tid is not null"))
    now = groups.format(_columns(after, names), sql.SQL("m.is_there"))
    steps = (
        cte("given", given.query),
        cte("fresh", _fresh_groups(target)),
        cte("named", _named_groups(target)),
        cte("replacing", _replacing_groups(state_id, target, names)),
        *state_effects(state_id, names, before, after, groups="replacing", lives="m.is_there"),
    )
    return Finals(
        steps,
        added=outputs_of(target.outputs, target.having, now, sql.SQL("1")),
        removed=outputs_of(target.outputs, target.having, then, sql.SQL("-1")),
        problems=None,
        parameters=given.parameters,
    )


def _fresh_groups(target: ReplacedGroups) -> sql.Composed:
    """The groups after the change."""
    keys, values = restored_values(target.keys, "r"), restored_values(target.values, "r")
    columns = [
        *with_aliases(keys, numbered_names("k", len(keys))),
        *with_aliases(values, numbered_names("v", len(values))),
    ]
    return sql.SQL("select {} from given r where r.{} > 0").format(
        comma_list([sql.SQL("true as is_there"), *columns]), identifier(WEIGHT)
    )


def _named_groups(target: ReplacedGroups) -> sql.Composed:
    """Every group that may have changed, once; PostgreSQL decides which keys are equal."""
    keys = with_aliases(restored_values(target.keys, "r"), numbered_names("k", len(target.keys)))
    return sql.SQL("select distinct {} from given r").format(comma_list([sql.SQL("true as is_named"), *keys]))


def _replacing_groups(state_id: int, target: ReplacedGroups, names: list[sql.SQL]) -> sql.Composed:
    """Each named group with its stored values `b…` and its new values `a…`."""
    keys, values = len(target.keys), len(target.values)
    key = [trusted_sql(f"coalesce(s.k{n}, f.k{n}, g.k{n})") for n in range(1, keys + 1)]
    stored = with_aliases(names, [*numbered_names("k", keys), *numbered_names("v", values)])
    columns = [
        sql.SQL("s.tid, coalesce(f.is_there, false) as is_there"),
        *with_aliases(key, numbered_names("k", keys)),
        *with_aliases(numbered_names("v", values, "s"), numbered_names("b", values)),
        *with_aliases(numbered_names("v", values, "f"), numbered_names("a", values)),
    ]
    return sql.SQL(
        "select {columns} from named g"
        " left join fresh f on {is_fresh}"
        " left join (select {stored} from only {state}) s on {is_stored}"
    ).format(
        columns=comma_list(columns),
        stored=comma_list([sql.SQL("ctid as tid"), *stored]),
        state=relation(state_table(state_id)),
        is_fresh=same_group(state_id, target.keys, "f", "g"),
        is_stored=same_group(state_id, target.keys, "s", "g"),
    )


def _columns(values: list[sql.SQL], names: list[sql.SQL]) -> sql.Composed:
    return comma_list(with_aliases(values, names))
