"""Each changed group with its state before and after the change, and the extrema it lost.

state@after = state@before + Δ

An extremum is the better of the stored and the incoming value, unless a value at least as good
as that one went away: then only a new scan of the group knows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from pgtrickle.apply.composing import aliased, identifier, listed, numbered, relation, trusted
from pgtrickle.apply.finals import restored, step, typed
from pgtrickle.apply.rows import ArrayRows, Rows, carried_columns, of_fields, relation_of
from pgtrickle.apply.states import same_group
from pgtrickle.apply.storage import state_table
from pgtrickle.plan.program import Merge, MergedGroups, Slot
from pgtrickle.postgres.connection import Connection, sql

_BEST = {Merge.MIN: ("least", "<="), Merge.MAX: ("greatest", ">=")}


def merging_steps(
    state_id: int, target: MergedGroups, rows: Rows, rescanned: Rows | None
) -> tuple[list[sql.Composable], dict[str, object]]:
    """The steps up to `merging`, and their parameters.

    `merging` has a row per changed group: `tid` of its state, the key `k…`, the count `before`
    and `after`, the slots `b…` before and `a…` after, `must_rescan` and `is_rescanned`.
    """
    given = relation_of(rows, carried_columns(target))
    steps: list[sql.Composable] = [step("given", given.query), step("change", _change(target))]
    parameters = dict(given.parameters)
    if target.rescan is not None and rescanned is not None:
        scanned = relation_of(rescanned, of_fields(target.rescan.fields), "rescanned")
        parameters.update(scanned.parameters)
        steps.append(step("rescanned", _scanned(target, scanned.query)))
    else:
        steps.append(step("rescanned", _scanned_nothing(target)))
    return [*steps, step("merging", _merging(state_id, target))], parameters


def groups_to_rescan(
    connection: Connection, state_id: int, target: MergedGroups, rows: Rows, portion: int
) -> Iterator[pa.Table]:
    """The carried keys of the groups that lost an extremum, at most `portion` of them at a time.

    Without keys there is one group: a table without columns names it.
    """
    if target.rescan is None or not _may_lose(target, rows):
        return
    steps, parameters = merging_steps(state_id, target, rows, None)
    keys = [trusted(field.carrier.carry_sql(f"m.k{n}")) for n, field in enumerate(target.keys, start=1)]
    query = sql.SQL("with {} select {} from merging m where m.must_rescan").format(
        listed(steps), listed([*keys, sql.SQL("true")])
    )
    columns = of_fields(target.keys)
    for found in _portions(connection, query, parameters, rows, portion):
        values = list(zip(*found, strict=True))
        yield pa.table({c.name: pa.array(v, c.arrow_type) for c, v in zip(columns, values, strict=False)})


def _portions(
    connection: Connection, query: sql.Composed, parameters: dict[str, object], rows: Rows, portion: int
) -> Iterator[list[tuple[Any, ...]]]:
    """The answer, fetched at once where it can only be small."""
    if isinstance(rows, ArrayRows):
        # in binary a float has all of its digits
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


def _may_lose(target: MergedGroups, rows: Rows) -> bool:
    if not isinstance(rows, ArrayRows):
        return True
    removed = [slot.removed.name for slot in target.slots if slot.removed]
    return any(rows.table.column(name).null_count < rows.table.num_rows for name in removed)


def _change(target: MergedGroups) -> sql.Composed:
    """The changes with their values restored; without keys there is one row, whatever was given."""
    slots = target.slots
    count = sql.SQL("coalesce(r.{}, 0) as n").format(identifier(target.count))
    came = [typed(restored([slot.change], "r")[0], slot.pg_type) for slot in slots]
    went = [
        typed(restored([slot.removed], "r")[0] if slot.removed else sql.SQL("null"), slot.pg_type)
        for slot in slots
    ]
    columns = [
        count,
        *aliased(restored(target.keys, "r"), numbered("k", len(target.keys))),
        *aliased(came, numbered("came", len(slots))),
        *aliased(went, numbered("went", len(slots))),
    ]
    rows = "given r" if target.keys else "(select) one left join given r on true"
    return sql.SQL("select {} from {}").format(listed(columns), sql.SQL(rows))


def _scanned(target: MergedGroups, query: sql.Composed) -> sql.Composed:
    """The groups that were scanned again: their keys, and the extremum of each slot that has one."""
    assert target.rescan is not None
    fields = target.rescan.fields
    keys = restored(fields[: len(target.keys)], "r")
    extrema = iter(restored(fields[len(target.keys) :], "r"))
    slots = [
        typed(next(extrema) if slot.merge in _BEST else sql.SQL("null"), slot.pg_type)
        for slot in target.slots
    ]
    columns = [*aliased(keys, numbered("k", len(keys))), *aliased(slots, numbered("s", len(slots)))]
    return sql.SQL("select {} from ({}) r").format(listed([*columns, sql.SQL("true as is_there")]), query)


def _scanned_nothing(target: MergedGroups) -> sql.Composed:
    keys = [typed(sql.SQL("null"), field.carrier.pg_type) for field in target.keys]
    slots = [typed(sql.SQL("null"), slot.pg_type) for slot in target.slots]
    columns = [*aliased(keys, numbered("k", len(keys))), *aliased(slots, numbered("s", len(slots)))]
    return sql.SQL("select {} where false").format(listed([*columns, sql.SQL("true as is_there")]))


def _merging(state_id: int, target: MergedGroups) -> sql.Composed:
    keys, slots = len(target.keys), target.slots
    # the stored key stands for the group: an equal one may look different
    key = [sql.SQL("coalesce(s.k{0}, c.k{0})").format(n) for n in map(_number, range(1, keys + 1))]
    stored = [
        sql.SQL("ctid as tid"),
        *aliased(state_names(target), [*numbered("k", keys), sql.SQL("n"), *numbered("s", len(slots))]),
    ]
    columns = [
        sql.SQL("s.tid, s.n as before, coalesce(s.n, 0) + c.n as after, x.is_there as is_rescanned"),
        *aliased(key, numbered("k", keys)),
        *aliased(numbered("s", len(slots), "s"), numbered("b", len(slots))),
        *aliased(map(_merged, range(1, len(slots) + 1), slots), numbered("a", len(slots))),
        sql.SQL("coalesce(s.n, 0) + c.n > 0 and ({}) as must_rescan").format(_lost_any(slots)),
    ]
    return sql.SQL(
        "select {columns} from change c"
        " left join (select {stored} from only {state}) s on {is_stored}"
        " left join rescanned x on {is_rescanned}"
    ).format(
        columns=listed(columns),
        stored=listed(stored),
        state=relation(state_table(state_id)),
        is_stored=same_group(state_id, numbered("k", keys, "s"), numbered("k", keys, "c")),
        is_rescanned=same_group(state_id, numbered("k", keys, "x"), numbered("k", keys, "c")),
    )


def _merged(number: int, slot: Slot) -> sql.Composed:
    """The slot after the change."""
    n = _number(number)
    if slot.merge not in _BEST:
        zero = typed(sql.SQL("'0'"), slot.pg_type)
        merged = sql.SQL("coalesce(s.s{0}, {1}) + coalesce(c.came{0}, {1})").format(n, zero)
        return typed(merged, slot.pg_type)
    best = sql.SQL(_BEST[slot.merge][0])
    return sql.SQL(
        "case when coalesce(s.n, 0) + c.n = 0 then null"
        " when x.is_there then x.s{0} else {1}(s.s{0}, c.came{0}) end"
    ).format(n, best)


def _lost_any(slots: tuple[Slot, ...]) -> sql.Composable:
    """Something went away that is at least as good as the best of what is known."""
    lost = [
        sql.SQL("c.went{0} is not null and coalesce(c.went{0} {1} {2}(s.s{0}, c.came{0}), true)").format(
            _number(number), sql.SQL(_BEST[slot.merge][1]), sql.SQL(_BEST[slot.merge][0])
        )
        for number, slot in enumerate(slots, start=1)
        if slot.merge in _BEST
    ]
    return sql.SQL(" or ").join(lost) if lost else sql.SQL("false")


def _number(number: int) -> sql.SQL:
    return trusted(str(number))
