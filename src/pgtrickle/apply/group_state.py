"""The state table of grouped results inside a statement: finds groups, and writes their new state."""

from __future__ import annotations

from collections.abc import Sequence

from pgtrickle.apply.compose import comma_list, image, numbered_names, relation, same, trusted_sql
from pgtrickle.apply.finals import cte
from pgtrickle.apply.storage import hash_function, state_table
from pgtrickle.model.carrier import Field
from pgtrickle.postgres.connection import sql


def same_group(state_id: int, keys: Sequence[Field], left: str, right: str) -> sql.Composable:
    """The condition that two relations have the same key: by hash, which has an index, then by equality."""
    if not keys:
        return sql.SQL("true")
    ours, theirs = numbered_names("k", len(keys), left), numbered_names("k", len(keys), right)
    return sql.SQL("{hash}({ours}) = {hash}({theirs}) and {same}").format(
        hash=relation(hash_function(state_id)),
        ours=comma_list(ours),
        theirs=comma_list(theirs),
        same=same(ours, theirs, [key.carrier.pg_type for key in keys]),
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
