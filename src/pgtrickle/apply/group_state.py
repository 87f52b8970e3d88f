"""The state table of grouped results inside a statement: finds groups, and writes their new state."""

from __future__ import annotations

from collections.abc import Sequence

from pgtrickle.apply.compose import comma_list, image, relation, same, trusted_sql
from pgtrickle.apply.finals import cte
from pgtrickle.apply.storage import hash_function, state_table
from pgtrickle.postgres.connection import sql


def same_group(
    state_id: int, left: Sequence[sql.Composable], right: Sequence[sql.Composable]
) -> sql.Composable:
    """The condition that two keys are of one group: by hash for the index, then by null-safe equality."""
    if not left:
        return sql.SQL("true")
    function = relation(hash_function(state_id))
    return sql.SQL("{hash}({left}) = {hash}({right}) and {same}").format(
        hash=function, left=comma_list(left), right=comma_list(right), same=same(left, right)
    )


def state_effects(
    state_id: int,
    names: Sequence[sql.Composable],
    before: Sequence[sql.Composable],
    after: Sequence[sql.Composable],
    *,
    groups: str,
    lives: str,
) -> list[sql.Composed]:
    """The steps that write the state of the groups in the step `groups`, which has the `tid` of each state.

    Groups for which `lives` is false are deleted, changed ones updated, new ones inserted.
    """
    parts = {
        "state": relation(state_table(state_id)),
        "names": comma_list(names),
        "values": comma_list(after),
        "groups": trusted_sql(groups),
        "lives": trusted_sql(lives),
        "differs": sql.SQL("{} *<> {}").format(image(before), image(after)),
    }
    gone = "delete from only {state} s using {groups} m where s.ctid = m.tid and not ({lives})"
    changed = (
        "update only {state} s set ({names}) = row({values}) from {groups} m"
        " where s.ctid = m.tid and ({lives}) and {differs}"
    )
    new = "insert into {state} ({names}) select {values} from {groups} m where m.tid is null and ({lives})"
    return [
        cte("state_gone", sql.SQL(gone).format(**parts)),
        cte("state_changed", sql.SQL(changed).format(**parts)),
        cte("state_new", sql.SQL(new).format(**parts)),
    ]
