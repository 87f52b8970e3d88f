"""Groups that PostgreSQL evaluated anew, each in the place of the stored one.

Δresult = final(groups@new ⋉ named) − final(state ⋉ named)
"""

from __future__ import annotations

from pgtrickle.apply.composing import aliased, identifier, listed, numbered, relation, trusted
from pgtrickle.apply.finals import Finals, outputs_of, restored, step
from pgtrickle.apply.rows import Rows, carried_columns, relation_of
from pgtrickle.apply.states import same_group, state_effects
from pgtrickle.apply.storage import state_table
from pgtrickle.plan.program import ReplacedGroups
from pgtrickle.plan.reads import WEIGHT
from pgtrickle.postgres.connection import sql


def replaced_finals(state_id: int, target: ReplacedGroups, rows: Rows) -> Finals:
    """Put the new groups into the state, and give the change of the groups' final rows."""
    given = relation_of(rows, carried_columns(target))
    names = [identifier(field.name) for field in (*target.keys, *target.values)]
    keys, values = numbered("k", len(target.keys), "m"), len(target.values)
    before, after = [*keys, *numbered("b", values, "m")], [*keys, *numbered("a", values, "m")]
    groups = sql.SQL("(select {} from replacing m where {}) x")
    then = groups.format(_columns(before, names), sql.SQL("m.tid is not null"))
    now = groups.format(_columns(after, names), sql.SQL("m.is_there"))
    steps = (
        step("given", given.query),
        step("fresh", _fresh(target)),
        step("named", _named(target)),
        step("replacing", _replacing(state_id, target, names)),
        *state_effects(state_id, names, before, after, groups="replacing", lives="m.is_there"),
    )
    return Finals(
        steps,
        added=outputs_of(target.outputs, target.having, now, sql.SQL("1")),
        removed=outputs_of(target.outputs, target.having, then, sql.SQL("-1")),
        problems=None,
        parameters=given.parameters,
    )


def _fresh(target: ReplacedGroups) -> sql.Composed:
    """The groups as they are now."""
    keys, values = restored(target.keys, "r"), restored(target.values, "r")
    columns = [*aliased(keys, numbered("k", len(keys))), *aliased(values, numbered("v", len(values)))]
    return sql.SQL("select {} from given r where r.{} > 0").format(
        listed([sql.SQL("true as is_there"), *columns]), identifier(WEIGHT)
    )


def _named(target: ReplacedGroups) -> sql.Composed:
    """Every group that may have changed, once: PostgreSQL decides which keys are equal."""
    keys = aliased(restored(target.keys, "r"), numbered("k", len(target.keys)))
    return sql.SQL("select distinct {} from given r").format(listed([sql.SQL("true as is_named"), *keys]))


def _replacing(state_id: int, target: ReplacedGroups, names: list[sql.SQL]) -> sql.Composed:
    """Each named group with its values `b…` as stored and `a…` as they are now."""
    keys, values = len(target.keys), len(target.values)
    key = [trusted(f"coalesce(s.k{n}, f.k{n}, g.k{n})") for n in range(1, keys + 1)]
    stored = aliased(names, [*numbered("k", keys), *numbered("v", values)])
    columns = [
        sql.SQL("s.tid, coalesce(f.is_there, false) as is_there"),
        *aliased(key, numbered("k", keys)),
        *aliased(numbered("v", values, "s"), numbered("b", values)),
        *aliased(numbered("v", values, "f"), numbered("a", values)),
    ]
    return sql.SQL(
        "select {columns} from named g"
        " left join fresh f on {is_fresh}"
        " left join (select {stored} from only {state}) s on {is_stored}"
    ).format(
        columns=listed(columns),
        stored=listed([sql.SQL("ctid as tid"), *stored]),
        state=relation(state_table(state_id)),
        is_fresh=same_group(state_id, numbered("k", keys, "f"), numbered("k", keys, "g")),
        is_stored=same_group(state_id, numbered("k", keys, "s"), numbered("k", keys, "g")),
    )


def _columns(values: list[sql.SQL], names: list[sql.SQL]) -> sql.Composed:
    return listed(aliased(values, names))
