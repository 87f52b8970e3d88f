"""The state table of a stream table within a statement: finding groups in it, and keeping it up to date."""

from __future__ import annotations

from collections.abc import Sequence

from pgtrickle.apply.composing import image, listed, relation, same, trusted
from pgtrickle.apply.finals import step
from pgtrickle.apply.storage import hash_function, state_table
from pgtrickle.postgres.connection import sql


def same_group(
    state_id: int, left: Sequence[sql.Composable], right: Sequence[sql.Composable]
) -> sql.Composable:
    """Two keys name one group: their hashes lead to it, null-safe equality decides."""
    if not left:
        return sql.SQL("true")
    function = relation(hash_function(state_id))
    return sql.SQL("{hash}({left}) = {hash}({right}) and {same}").format(
        hash=function, left=listed(left), right=listed(right), same=same(left, right)
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
    """The state follows the step `groups`, whose rows know the `tid` of the state they have, if any.

    Groups for which `lives` is false leave, changed ones change, new ones come.
    """
    parts = {
        "state": relation(state_table(state_id)),
        "names": listed(names),
        "values": listed(after),
        "groups": trusted(groups),
        "lives": trusted(lives),
        "differs": sql.SQL("{} *<> {}").format(image(before), image(after)),
    }
    gone = "delete from only {state} s using {groups} m where s.ctid = m.tid and not ({lives})"
    changed = (
        "update only {state} s set ({names}) = row({values}) from {groups} m"
        " where s.ctid = m.tid and ({lives}) and {differs}"
    )
    new = "insert into {state} ({names}) select {values} from {groups} m where m.tid is null and ({lives})"
    return [
        step("state_gone", sql.SQL(gone).format(**parts)),
        step("state_changed", sql.SQL(changed).format(**parts)),
        step("state_new", sql.SQL(new).format(**parts)),
    ]
