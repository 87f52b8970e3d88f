"""Merges changed groups with their state, and finds the groups that lost an extremum.

state@after = state@before + Δ

An extremum is the better of the stored and the incoming value, unless a value that is at least as good was
removed. Then the group has to be scanned again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from pgtrickle.apply.compose import (
    comma_list,
    identifier,
    numbered_names,
    relation,
    trusted_sql,
    with_aliases,
)
from pgtrickle.apply.finals import cast_value, cte, restored_values
from pgtrickle.apply.group_state import same_group
from pgtrickle.apply.result_rows import (
    ArrayRows,
    CarriedColumn,
    Rows,
    carried_columns,
    carried_fields,
    relation_of,
)
from pgtrickle.apply.storage import state_table
from pgtrickle.plan.program import Merge, MergedGroups, Slot, Target
from pgtrickle.postgres.connection import Connection, sql

_BEST = {Merge.MIN: ("least", "<="), Merge.MAX: ("greatest", ">=")}

RESCANNED_ROWS: Final = "rescanned"
"""The prefix of the parameters that hold rescanned groups."""


def rescanned_columns(target: Target) -> tuple[CarriedColumn, ...]:
    """The columns of rescanned groups."""
    assert isinstance(target, MergedGroups)
    assert target.rescan is not None
    return carried_fields(target.rescan.fields)


def merging_steps(
    state_id: int, target: MergedGroups, rows: Rows, rescanned: Rows | None
) -> tuple[list[sql.Composable], dict[str, object]]:
    """The steps up to `merging`, and their parameters.

    `merging` has a row for each changed group: the `tid` of its state, the key `k…`, the count `before` and
    `after`, the slots `b…` before and `a…` after, `must_rescan` and `is_rescanned`.
    """
    given = relation_of(rows, carried_columns(target))
    steps: list[sql.Composable] = [cte("given", given.query), cte("change", _change(target))]
    parameters = dict(given.parameters)
    if target.rescan is not None and rescanned is not None:
        scanned = relation_of(rescanned, rescanned_columns(target), RESCANNED_ROWS)
        parameters.update(scanned.parameters)
        steps.append(cte("rescanned", _scanned_groups(target, scanned.query)))
    else:
        steps.append(cte("rescanned", _no_scanned_groups(target)))
    return [*steps, cte("merging", _merge_statement(state_id, target))], parameters


def groups_to_rescan(
    connection: Connection, state_id: int, target: MergedGroups, rows: Rows, portion: int
) -> Iterator[pa.Table]:
    """The carried keys of the groups that lost an extremum, at most `portion` of them at a time.

    A target without keys has one group, which a table without columns stands for.
    """
    if not may_rescan(target, rows):
        return
    steps, parameters = merging_steps(state_id, target, rows, None)
    keys = [trusted_sql(field.carrier.carry_sql(f"m.k{n}")) for n, field in enumerate(target.keys, start=1)]
    query = sql.SQL("with {} select {} from merging m where m.must_rescan").format(
        comma_list(steps), comma_list([*keys, sql.SQL("true")])
    )
    columns = carried_fields(target.keys)
    for found in _portions(connection, query, parameters, rows, portion):
        values = list(zip(*found, strict=True))
        yield pa.table({c.name: pa.array(v, c.arrow_type) for c, v in zip(columns, values, strict=False)})


def _portions(
    connection: Connection, query: sql.Composed, parameters: dict[str, object], rows: Rows, portion: int
) -> Iterator[list[tuple[Any, ...]]]:
    """The rows of the query in portions; few input rows give one portion."""
    if isinstance(rows, ArrayRows):
        # the binary format keeps all digits of a float
        if found := connection.execute(query, parameters, binary=True).fetchall():
            yield found
        return
    with connection.cursor(name="groups to rescan") as cursor:
        cursor.execute(query, parameters, binary=True)
        while found := cursor.fetchmany(portion):
            yield found


def state_names(target: MergedGroups) -> list[sql.SQL]:
    """The columns of the state table, quoted."""
    names = (*(field.name for field in target.keys), target.count, *(slot.name for slot in target.slots))
    return [identifier(name) for name in names]


def may_rescan(target: MergedGroups, rows: Rows) -> bool:
    """Whether a group may have lost an extremum, so that its state has to be asked."""
    if target.rescan is None or not isinstance(rows, ArrayRows):
        return target.rescan is not None
    removed = [slot.removed.name for slot in target.slots if slot.removed]
    return any(rows.table.column(name).null_count < rows.table.num_rows for name in removed)


def _change(target: MergedGroups) -> sql.Composed:
    """The changes as PostgreSQL values; without keys there is always exactly one row."""
    slots = target.slots
    count = sql.SQL("coalesce(r.{}, 0) as n").format(identifier(target.count))
    came = [cast_value(restored_values([slot.change], "r")[0], slot.pg_type) for slot in slots]
    went = [
        cast_value(restored_values([slot.removed], "r")[0] if slot.removed else sql.SQL("null"), slot.pg_type)
        for slot in slots
    ]
    columns = [
        count,
        *with_aliases(restored_values(target.keys, "r"), numbered_names("k", len(target.keys))),
        *with_aliases(came, numbered_names("came", len(slots))),
        *with_aliases(went, numbered_names("went", len(slots))),
    ]
    rows = "given r" if target.keys else "(select) one left join given r on true"
    return sql.SQL("select {} from {}").format(comma_list(columns), sql.SQL(rows))


def _scanned_groups(target: MergedGroups, query: sql.Composed) -> sql.Composed:
    """The rescanned groups: their keys, and the extremum of each MIN and MAX slot."""
    assert target.rescan is not None
    fields = target.rescan.fields
    keys = restored_values(fields[: len(target.keys)], "r")
    extrema = iter(restored_values(fields[len(target.keys) :], "r"))
    slots = [
        cast_value(next(extrema) if slot.merge in _BEST else sql.SQL("null"), slot.pg_type)
        for slot in target.slots
    ]
    columns = [
        *with_aliases(keys, numbered_names("k", len(keys))),
        *with_aliases(slots, numbered_names("s", len(slots))),
    ]
    return sql.SQL("select {} from ({}) r").format(comma_list([*columns, sql.SQL("true as is_there")]), query)


def _no_scanned_groups(target: MergedGroups) -> sql.Composed:
    keys = [cast_value(sql.SQL("null"), field.carrier.pg_type) for field in target.keys]
    slots = [cast_value(sql.SQL("null"), slot.pg_type) for slot in target.slots]
    columns = [
        *with_aliases(keys, numbered_names("k", len(keys))),
        *with_aliases(slots, numbered_names("s", len(slots))),
    ]
    return sql.SQL("select {} where false").format(comma_list([*columns, sql.SQL("true as is_there")]))


def _merge_statement(state_id: int, target: MergedGroups) -> sql.Composed:
    keys, slots = len(target.keys), target.slots
    # the stored key represents the group: an equal key may be printed differently
    key = [sql.SQL("coalesce(s.k{0}, c.k{0})").format(n) for n in map(_number, range(1, keys + 1))]
    stored = [
        sql.SQL("ctid as tid"),
        *with_aliases(
            state_names(target), [*numbered_names("k", keys), sql.SQL("n"), *numbered_names("s", len(slots))]
        ),
    ]
    columns = [
        sql.SQL("s.tid, s.n as before, coalesce(s.n, 0) + c.n as after, x.is_there as is_rescanned"),
        *with_aliases(key, numbered_names("k", keys)),
        *with_aliases(numbered_names("s", len(slots), "s"), numbered_names("b", len(slots))),
        *with_aliases(map(_merged_slot, range(1, len(slots) + 1), slots), numbered_names("a", len(slots))),
        sql.SQL("coalesce(s.n, 0) + c.n > 0 and ({}) as must_rescan").format(_lost_any(slots)),
    ]
    return sql.SQL(
        "select {columns} from change c"
        " left join (select {stored} from only {state}) s on {is_stored}"
        " left join rescanned x on {is_rescanned}"
    ).format(
        columns=comma_list(columns),
        stored=comma_list(stored),
        state=relation(state_table(state_id)),
        is_stored=same_group(state_id, target.keys, "s", "c"),
        is_rescanned=same_group(state_id, target.keys, "x", "c"),
    )


def _merged_slot(number: int, slot: Slot) -> sql.Composed:
    """The slot after the change."""
    n = _number(number)
    if slot.merge not in _BEST:
        zero = cast_value(sql.SQL("'0'"), slot.pg_type)
        merged = sql.SQL("coalesce(s.s{0}, {1}) + coalesce(c.came{0}, {1})").format(n, zero)
        return cast_value(merged, slot.pg_type)
    best = sql.SQL(_BEST[slot.merge][0])
    return sql.SQL(
        "case when coalesce(s.n, 0) + c.n = 0 then null"
        " when x.is_there then x.s{0} else {1}(s.s{0}, c.came{0}) end"
    ).format(n, best)


def _lost_any(slots: tuple[Slot, ...]) -> sql.Composable:
    """The condition that a removed value is at least as good as the best known one."""
    lost = [
        sql.SQL("c.went{0} is not null and coalesce(c.went{0} {1} {2}(s.s{0}, c.came{0}), true)").format(
            _number(number), sql.SQL(_BEST[slot.merge][1]), sql.SQL(_BEST[slot.merge][0])
        )
        for number, slot in enumerate(slots, start=1)
        if slot.merge in _BEST
    ]
    return sql.SQL(" or ").join(lost) if lost else sql.SQL("false")


def _number(number: int) -> sql.SQL:
    return trusted_sql(str(number))
