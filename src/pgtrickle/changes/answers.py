"""Queries that PostgreSQL evaluates over the rows that a change can reach, at either end of the window."""

from __future__ import annotations

from pgtrickle.changes.keys import ALWAYS, NEVER, Keys, any_of, trusted
from pgtrickle.changes.relations import CHANGE, Ends, among, carried, native, where, window
from pgtrickle.plan.reads import WEIGHT, Part, Read, Version
from pgtrickle.postgres.connection import sql


def answer_query(read: Read, ends: Ends, keys: Keys | None) -> sql.Composed:
    """The query of an answer, over its parts as they are at the answer's version."""
    assert read.query is not None
    kept = among([any_of(read.lookups, keys) if read.lookups else ALWAYS])
    if read.version in _COUNTS:
        return _compared(read, ends, keys, kept)
    heading = _heading(read, read.version, ends, keys)
    # rows without columns would be none once they have travelled
    listed = carried(read) if read.fields else sql.SQL("1::bigint as {}").format(sql.Identifier(WEIGHT))
    return sql.SQL("{}select {} from ({}) as t{}").format(heading, listed, trusted(read.query), kept)


_COUNTS = {
    Version.CHANGED: sql.SQL("sum(t.{end})::bigint"),
    Version.STAYED: sql.SQL(
        "least(count(*) filter (where t.{end} > 0), count(*) filter (where t.{end} < 0))"
    ),
}
"""How often a row counts that comes once for each time it is there: with 1 now, with -1 before."""


def _compared(read: Read, ends: Ends, keys: Keys | None, kept: sql.Composable) -> sql.Composed:
    """Both ends against each other, in the form in which values travel."""
    assert read.query is not None
    weight = _COUNTS[read.version].format(end=CHANGE)
    both = [
        sql.SQL("select t.*, {} as {} from ({}select * from ({}) as t) as t").format(
            sql.Literal(sign), CHANGE, _heading(read, version, ends, keys), trusted(read.query)
        )
        for sign, version in ((1, Version.NOW), (-1, Version.BEFORE))
    ]
    return sql.SQL(
        "select {fields}, {weight} as {name} from ({both}) as t{kept}"
        " group by {positions} having {weight} <> 0"
    ).format(
        fields=carried(read),
        weight=weight,
        name=sql.Identifier(WEIGHT),
        both=sql.SQL(" union all ").join(both),
        kept=kept,
        positions=sql.SQL(", ").join(sql.SQL(str(n + 1)) for n in range(len(read.fields))),
    )


def _heading(read: Read, version: Version, ends: Ends, keys: Keys | None) -> sql.Composable:
    """The parts of an answer under their names."""
    parts = [
        sql.SQL("{} as {}({})").format(
            trusted(part.name), _kept(part, version), _part(part, version, ends, keys)
        )
        for part in read.parts
    ]
    return sql.SQL("with {} ").format(sql.SQL(", ").join(parts)) if parts else sql.SQL("")


def _kept(part: Part, version: Version) -> sql.SQL:
    """What a recursion reads in each of its steps is put together once; a table as it is has indexes."""
    is_made = version is Version.BEFORE and part.change is not None
    return sql.SQL("materialized ") if part.is_recursed and is_made else sql.SQL("")


def is_empty_answer(read: Read, keys: Keys) -> bool:
    """Whether none of the parts has a row."""
    return all(_reached(part, keys) is NEVER and _has_no_change(part, keys) for part in read.parts)


def _has_no_change(part: Part, keys: Keys) -> bool:
    if part.change is None:
        return True
    change = keys.tables.get(part.change.name)
    return change is not None and not change.num_rows


def _reached(part: Part, keys: Keys | None) -> sql.Composable:
    if not part.is_reached:
        return NEVER if keys is not None else ALWAYS
    return any_of(part.rows.lookups, keys) if part.rows.lookups else ALWAYS


def _part(part: Part, version: Version, ends: Ends, keys: Keys | None) -> sql.Composed:
    """The reached rows and the change, as a plain bag."""
    reached = _reached(part, keys)
    assert part.rows.source is not None
    source = sql.Identifier(part.rows.source.table.schema, part.rows.source.table.name)
    rows = sql.SQL("select {} from {} as t{}").format(
        native(part.rows), source, where(part.rows, [reached], ends.now)
    )
    if part.change is None:
        return rows
    if version is Version.NOW:
        if reached is ALWAYS:
            return rows
        beyond = sql.SQL("({}) is not true").format(reached)
        return sql.SQL("{} union all {}").format(rows, _moved(part.rows, ends, ">", [beyond]))
    gone = _moved(part.rows, ends, "<", [])
    if reached is NEVER:
        return gone
    inserted = _moved(part.rows, ends, ">", [reached])
    return sql.SQL("(({}) except all ({})) union all ({})").format(rows, inserted, gone)


def _moved(read: Read, ends: Ends, sign: str, conditions: list[sql.Composable]) -> sql.Composed:
    """Rows that the window brought (above zero) or took (below), as often as it did."""
    names = sql.SQL(", ").join(sql.SQL("c.{}").format(sql.Identifier(field.name)) for field in read.fields)
    positions = sql.SQL(", ").join(sql.SQL(str(n + 1)) for n in range(len(read.fields)))
    return sql.SQL(
        "select {names} from (select {fields}, abs(sum(t.{change})) as {change} from ({window}) as t{where}"
        " group by {positions} having sum(t.{change}) {sign} 0) as c, generate_series(1, c.{change})"
    ).format(
        names=names,
        fields=native(read),
        change=CHANGE,
        window=window(read, ends),
        where=among(conditions),
        positions=positions,
        sign=trusted(sign),
    )
