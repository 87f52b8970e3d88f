"""Queries that PostgreSQL evaluates over the rows that a change affects, at both ends of the window."""

from __future__ import annotations

from pgtrickle.changes.keys import ALWAYS, NEVER, LookupKeys, any_of, key_rows, trusted_sql
from pgtrickle.changes.recursions import change_name, closure_query, derived_columns
from pgtrickle.changes.relations import (
    Ends,
    carried_list,
    change_column,
    change_of,
    native_list,
    where,
    where_all,
    window_query,
)
from pgtrickle.plan.reads import WEIGHT, Closure, Part, Read, Version
from pgtrickle.postgres.connection import sql


def answer_query(read: Read, ends: Ends, keys: LookupKeys | None) -> sql.Composed:
    """The query of an answer, over its parts at the version of the answer."""
    assert read.query is not None
    kept = where_all([any_of(read.lookups, keys) if read.lookups else ALWAYS])
    if read.closure is not None:
        assert ends.stored is not None
        return closure_query(read, _changed_derivations(read, read.closure, ends, keys), ends.stored)
    if read.version in _COUNTS:
        return _comparison_query(read, ends, keys, kept)
    if read.by_index is not None and (rows := key_rows(read.lookups, keys)) is not None:
        return _query_by_index(read, read.by_index, rows)
    heading = _parts_clause(read, read.version, ends, keys)
    # rows without columns would be lost on their way to Spark
    listed = carried_list(read) if read.fields else sql.SQL("1::bigint as {}").format(sql.Identifier(WEIGHT))
    return sql.SQL("{}select {} from ({}) as t{}").format(heading, listed, trusted_sql(read.query), kept)


def _query_by_index(read: Read, query: str, rows: sql.Composable) -> sql.Composed:
    names = sql.SQL(", ").join(sql.SQL(f"k{number}") for number in range(1, len(read.lookups[0].keys) + 1))
    return sql.SQL("with keys({}) as (select * from {}) select {} from ({}) as t").format(
        names, rows, carried_list(read), trusted_sql(query)
    )


_COUNTS = {
    Version.CHANGED: sql.SQL("sum(t.{end})::bigint"),
    Version.STAYED: sql.SQL(
        "least(count(*) filter (where t.{end} > 0), count(*) filter (where t.{end} < 0))"
    ),
}
"""The weight of a row that occurs with 1 for each copy now, and with -1 for each copy before."""


def _comparison_query(read: Read, ends: Ends, keys: LookupKeys | None, kept: sql.Composable) -> sql.Composed:
    """Compares both ends, by the carried form of the values."""
    assert read.query is not None
    change = change_column(read.query)
    weight = _COUNTS[read.version].format(end=change)
    return sql.SQL(
        "select {fields}, {weight} as {name} from ({both}) as t{kept}"
        " group by {positions} having {weight} <> 0"
    ).format(
        fields=carried_list(read),
        weight=weight,
        name=sql.Identifier(WEIGHT),
        both=_both_ends(read, change, ends, keys),
        kept=kept,
        positions=sql.SQL(", ").join(sql.SQL(str(n + 1)) for n in range(len(read.fields))),
    )


def _both_ends(read: Read, change: sql.Identifier, ends: Ends, keys: LookupKeys | None) -> sql.Composed:
    """The rows of the query now, where `change` is 1, and before, where it is -1."""
    assert read.query is not None
    return sql.SQL(" union all ").join(
        sql.SQL("select t.*, {} as {} from ({}select * from ({}) as t) as t").format(
            sql.Literal(sign), change, _parts_clause(read, version, ends, keys), trusted_sql(read.query)
        )
        for sign, version in ((1, Version.NOW), (-1, Version.BEFORE))
    )


def _changed_derivations(read: Read, closure: Closure, ends: Ends, keys: LookupKeys | None) -> sql.Composed:
    """The derivations of a recursion that there are more or less of now."""
    change = change_name(closure)
    columns = [sql.SQL("t.{}").format(sql.Identifier(name)) for name in derived_columns(closure)]
    return sql.SQL(
        "select {columns}, sum(t.{change})::bigint as {change} from ({both}) as t group by {columns}"
        " having sum(t.{change}) <> 0"
    ).format(columns=sql.SQL(", ").join(columns), change=change, both=_both_ends(read, change, ends, keys))


def _parts_clause(read: Read, version: Version, ends: Ends, keys: LookupKeys | None) -> sql.Composable:
    """The parts of an answer, as common table expressions."""
    parts = [
        sql.SQL("{} as {}({})").format(
            trusted_sql(part.name), _materialization(part, version), _part(part, version, ends, keys)
        )
        for part in read.parts
    ]
    return sql.SQL("with {} ").format(sql.SQL(", ").join(parts)) if parts else sql.SQL("")


def _materialization(part: Part, version: Version) -> sql.SQL:
    """MATERIALIZED for a computed part that a recursion reads in each step; a plain table has indexes."""
    is_made = version is Version.BEFORE and part.change is not None
    return sql.SQL("materialized ") if part.is_recursed and is_made else sql.SQL("")


def is_empty_answer(read: Read, keys: LookupKeys) -> bool:
    """Whether all parts are empty."""
    return all(_reach_condition(part, keys) is NEVER and _has_no_change(part, keys) for part in read.parts)


def _has_no_change(part: Part, keys: LookupKeys) -> bool:
    if part.change is None:
        return True
    change = keys.tables.get(part.change.name)
    return change is not None and not change.num_rows


def _reach_condition(part: Part, keys: LookupKeys | None) -> sql.Composable:
    if not part.is_reached:
        return NEVER if keys is not None else ALWAYS
    return any_of(part.rows.lookups, keys) if part.rows.lookups else ALWAYS


def _part(part: Part, version: Version, ends: Ends, keys: LookupKeys | None) -> sql.Composed:
    """The affected rows and the change, as plain rows."""
    reached = _reach_condition(part, keys)
    assert part.rows.source is not None
    rows = sql.SQL("select {} from {} as t{}").format(
        native_list(part.rows), ends.table(part.rows.source), where(part.rows, [reached], ends.now)
    )
    if part.change is None:
        return rows
    if version is Version.NOW:
        if reached is ALWAYS:
            return rows
        others = sql.SQL("({}) is not true").format(reached)
        return sql.SQL("{} union all {}").format(rows, _moved_rows(part.rows, ends, ">", [others]))
    deleted = _moved_rows(part.rows, ends, "<", [])
    if reached is NEVER:
        return deleted
    inserted = _moved_rows(part.rows, ends, ">", [reached])
    return sql.SQL("(({}) except all ({})) union all ({})").format(rows, inserted, deleted)


def _moved_rows(read: Read, ends: Ends, sign: str, conditions: list[sql.Composable]) -> sql.Composed:
    """The rows that the window inserted (`sign` is >) or deleted (<), once for each copy."""
    names = sql.SQL(", ").join(sql.SQL("c.{}").format(sql.Identifier(field.name)) for field in read.fields)
    positions = sql.SQL(", ").join(sql.SQL(str(n + 1)) for n in range(len(read.fields)))
    assert read.source is not None
    return sql.SQL(
        "select {names} from (select {fields}, abs(sum(t.{change})) as {copies} from ({window}) as t{where}"
        " group by {positions} having sum(t.{change}) {sign} 0) as c, generate_series(1, c.{copies})"
    ).format(
        names=names,
        fields=native_list(read),
        change=change_of(read.source),
        copies=change_column(*(field.name for field in read.fields)),
        window=window_query(read, ends),
        where=where_all(conditions),
        positions=positions,
        sign=trusted_sql(sign),
    )
