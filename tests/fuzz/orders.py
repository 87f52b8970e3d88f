"""Queries whose answer depends on the order of a subquery, and functions that return sets in select lists.

The order is total up to rows that are equal in all columns, so that there is one answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tests.fuzz.drawing import Draw, Query
from tests.fuzz.tables import Columns

GATHERED: Final = {
    "array_agg({})": "any",
    "string_agg({}::text, ',')": "text",
    "jsonb_agg({})": "json",
    "(array_agg({}))[1]": "any",
    "jsonb_object_agg(coalesce({}::text, '-'), 1)": "json",
    "array_agg({}) filter (where {} is not null)": "any",
}
"""Aggregates that gather rows in the order in which they come."""

POSITIONED: Final = {
    "row_number() over ()": "big",
    "lag({}) over ()": "any",
    "array_agg({}) over ()": "any",
    "first_value({}) over (rows between 1 preceding and current row)": "any",
}
_DIRECTIONS: Final = ("", "", " desc", " nulls first", " desc nulls last")
_LIKE_THEMSELVES: Final = frozenset({"int", "big", "text", "bool", "date", "stamp", "num"})
"""Kinds whose equal values cannot be told apart: ties do not matter."""


def ordered(draw: Draw, found: Query) -> tuple[str, Columns]:
    """The query in a total order, and its columns; perhaps with a limit, or through one more subquery."""
    columns = {name: kind for name, kind in found.columns.items() if kind in _LIKE_THEMSELVES}
    name = draw.name("r")
    listed = ", ".join(columns) or "1 as c0"
    columns = columns or {"c0": "int"}
    names = draw.sample(list(columns), len(columns))
    items = [f"{column}{draw.choice(_DIRECTIONS)}" for column in names]
    if draw.chance(0.6):
        items[0] = names[0]
    sql = f"select {listed} from ({found.sql}) {name} order by {', '.join(items)}"
    if draw.chance(0.25):
        sql += f" limit {draw.randint(1, 6)}"
    if draw.chance(0.25):
        sql = f"select * from ({sql}) {draw.name('r')}"
    return sql, {column: columns[column] for column in names}


def in_order(draw: Draw, found: Query) -> Query:
    """A query above an ordered one: it gathers rows, counts them, or takes the first ones."""
    sql, columns = ordered(draw, found)
    column = draw.choice(list(columns))
    kind = draw.weighted({"gathered": 3.0, "first": 2.0, "positioned": 1.0})
    if kind == "first":
        offset = f" offset {draw.randint(1, 2)}" if draw.chance(0.3) else ""
        cut = f"select * from ({sql}) {draw.name('r')} limit {draw.randint(1, 4)}{offset}"
        return Query(cut, columns, is_ordered=True)
    if kind == "positioned":
        form = draw.choice(list(POSITIONED))
        shown = f"select {', '.join(columns)}, {form.format(column)} as c9"
        return Query(f"{shown} from ({sql}) {draw.name('r')}", {**columns, "c9": POSITIONED[form]})
    form = draw.choice(list(GATHERED))
    call = form.replace("{}", column)
    # the order is kept in groups if it begins with their key
    keys = list(columns)[:1] if draw.chance(0.6) else []
    group = f" group by {keys[0]}" if keys else ""
    shown = ", ".join([*keys, f"{call} as c9", "count(*) as c8"])
    outputs = {key: columns[key] for key in keys} | {"c9": GATHERED[form], "c8": "big"}
    return Query(f"select {shown} from ({sql}) {draw.name('r')}{group}", outputs)


def expanded(draw: Draw, names: Sequence[str], columns: Columns, source: str) -> Query:
    """Rows with a function that returns a set in the select list, perhaps in an order with a limit."""
    ints = [name for name, kind in columns.items() if kind == "int"]
    arrays = [name for name, kind in columns.items() if kind == "ints"]
    documents = [name for name, kind in columns.items() if kind == "json"]
    calls = {f"generate_series(1, {draw.randint(0, 3)})": "int"}
    calls |= {f"generate_series({name}, 2)": "int" for name in ints}
    calls |= {f"unnest({name})": "int" for name in arrays}
    calls |= {
        f"(jsonb_each_text(jsonb_build_object('a', {name}, 'b', 1))).value": "text" for name in documents
    }
    call = draw.choice(list(calls))
    kinds = {draw.alias(n): (name, columns[name]) for n, name in enumerate(names)}
    alias = draw.alias(len(kinds))
    listed = ", ".join([*(f"{name} as {own}" for own, (name, _) in kinds.items()), f"{call} as {alias}"])
    outputs = {own: kind for own, (_, kind) in kinds.items()} | {alias: calls[call]}
    sql = f"select {listed}{source}"
    if draw.chance(0.35) and all(columns[name] in _LIKE_THEMSELVES for name in names):
        items = [f"{n + 1}{draw.choice(_DIRECTIONS)}" for n in range(len(kinds))]
        if draw.chance(0.4):
            items.insert(draw.randint(0, len(items)), f"{len(kinds) + 1}{draw.choice(_DIRECTIONS)}")
        cut = f" order by {', '.join(items)} limit {draw.randint(1, 5)}"
        return Query(sql + cut, outputs, is_ordered=True)
    if draw.chance(0.3):
        return Query(f"select * from ({sql}) {draw.name('r')} where {alias} is not null", outputs)
    return Query(sql, outputs)
