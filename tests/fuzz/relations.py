"""What stands in FROM: tables, subqueries, VALUES, functions, LATERAL, and all kinds of joins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from tests.fuzz.drawing import Draw, Query, Scope
from tests.fuzz.expressions import column, condition, literal, value
from tests.fuzz.tables import Columns

JOINS: Final = {
    "join": 4.0,
    "left join": 3.0,
    "right join": 1.2,
    "full join": 1.5,
    "cross join": 0.4,
    "natural join": 0.2,
    "natural left join": 0.15,
    "natural full join": 0.15,
    "using": 0.8,
}


class Subquery(Protocol):
    """Draws a query for FROM that may read `outer`."""

    def __call__(self, draw: Draw, depth: int, outer: Columns) -> Query: ...


@dataclass(frozen=True, slots=True)
class Relations:
    """A FROM clause, and the columns it offers."""

    sql: str
    columns: Columns

    def renamed(self, alias: str) -> Relations:
        columns = {f"{alias}.{name}": kind for name, kind in self.columns.items()}
        return Relations(f"{self.sql} {alias}", columns)


def relations(
    draw: Draw, depth: int, outer: Columns, subquery: Subquery, counts: dict[int, float]
) -> Relations:
    """Some relations, joined in a tree; now and then two trees that only WHERE connects."""
    count = draw.weighted(counts)
    if count > 1 and draw.chance(0.1):
        first = _tree(draw, depth, outer, subquery, count - 1)
        second = _tree(draw, depth, outer, subquery, 1)
        return Relations(f"{first.sql}, {second.sql}", first.columns | second.columns)
    return _tree(draw, depth, outer, subquery, count)


def _tree(draw: Draw, depth: int, outer: Columns, subquery: Subquery, count: int) -> Relations:
    if count == 1:
        return _item(draw, depth, outer, {}, subquery)
    last = 1 if draw.chance(0.8) else draw.randint(1, count - 1)
    left = _tree(draw, depth, outer, subquery, count - last)
    if last > 1:
        inner = _tree(draw, depth, outer, subquery, last)
        return _joined(draw, depth, left, Relations(f"({inner.sql})", inner.columns), outer)
    right = _item(draw, depth, outer, left.columns, subquery)
    if right.sql.startswith("lateral"):
        kind = draw.choice(["join", "left join"])
        found = left.columns | right.columns
        test = "true" if draw.chance(0.6) else condition(draw, Scope(found), fuel=1)
        return Relations(f"{left.sql} {kind} {right.sql} on {test}", found)
    return _joined(draw, depth, left, right, outer)


def _item(draw: Draw, depth: int, outer: Columns, left: Columns, subquery: Subquery) -> Relations:
    if draw.ctes and draw.chance(0.5):
        name = draw.choice(list(draw.ctes))
        return Relations(name, draw.ctes[name]).renamed(draw.name("r"))
    options = {"table": 6.0, "values": 0.15, "series": 0.15}
    if depth > 0:
        options |= {"subquery": 2.5}
        if left:
            options |= {"lateral": 0.6}
    if "ints" in left.values() or "json" in left.values():
        options |= {"elements": 1.0}
    kind = draw.weighted(options)
    if kind == "subquery":
        found = subquery(draw, depth - 1, outer if draw.chance(0.2) else {})
        if draw.chance(0.08):
            found = _with_unread(draw, found)
        return Relations(f"({found.sql})", found.columns).renamed(draw.name("r"))
    if kind == "lateral":
        found = subquery(draw, depth - 1, {**outer, **left})
        return Relations(f"lateral ({found.sql})", found.columns).renamed(draw.name("r"))
    if kind in {"values", "series", "elements"}:
        return _called(draw, kind, left)
    table = draw.choice(draw.tables)
    return Relations(table.name, table.columns).renamed(draw.name("r"))


def _with_unread(draw: Draw, found: Query) -> Query:
    """The query with one more column that nobody reads: a subquery that may have several rows."""
    table, name = draw.choice(draw.tables), draw.name("r")
    unread = f"(select {next(iter(table.columns))} from {table.name}) as unread"
    return Query(f"select {name}.*, {unread} from ({found.sql}) {name}", found.columns)


def _called(draw: Draw, kind: str, left: Columns) -> Relations:
    """Rows that no table holds."""
    name = draw.name("r")
    if kind == "values":
        rows = ", ".join(f"({literal(draw, 'int')}, {literal(draw, 'text')})" for _ in range(2))
        return Relations(f"(values {rows}) {name}(c0, c1)", {f"{name}.c0": "int", f"{name}.c1": "text"})
    if kind == "series":
        return Relations(f"generate_series(0, {draw.randint(1, 3)}) {name}(c0)", {f"{name}.c0": "int"})
    arrays = [column for column, found in left.items() if found == "ints"]
    if not arrays:
        column = draw.choice([column for column, found in left.items() if found == "json"])
        sql = f"lateral jsonb_array_elements_text({column}) {name}(c0)"
        return Relations(sql, {f"{name}.c0": "text"})
    column = draw.choice(arrays)
    if draw.chance(0.5):
        return Relations(f"lateral unnest({column}) {name}(c0)", {f"{name}.c0": "int"})
    columns = {f"{name}.c0": "int", f"{name}.c1": "big"}
    return Relations(f"lateral unnest({column}) with ordinality {name}(c0, c1)", columns)


def _joined(draw: Draw, depth: int, left: Relations, right: Relations, outer: Columns) -> Relations:
    columns = left.columns | right.columns
    kind = draw.weighted(JOINS)
    if kind == "using":
        shared = _shared(left.columns, right.columns)
        if shared:
            chosen = draw.some(shared, 1, 2)
            word = draw.choice(["join", "left join", "right join", "full join"])
            merged = {name: _kind_of(left.columns, name) for name in chosen}
            sql = f"{left.sql} {word} {right.sql} using ({', '.join(chosen)})"
            return Relations(sql, {**columns, **merged})
        kind = "join"
    if kind == "cross join" or kind.startswith("natural"):
        return Relations(f"{left.sql} {kind} {right.sql}", columns)
    scope = Scope(columns, outer, max(depth - 1, 0))
    test = _equality(draw, left, right) if kind == "full join" else _test(draw, left, right)
    if draw.chance(0.25):
        extra = condition(draw, scope if draw.chance(0.2) else scope.alone, fuel=1)
        test += f" {'and' if kind == 'full join' or draw.chance(0.85) else 'or'} {extra}"
    return Relations(f"{left.sql} {kind} {right.sql} on {test}", columns)


def _equality(draw: Draw, left: Relations, right: Relations) -> str:
    """An equality of two columns: PostgreSQL has no other full joins."""
    shared = [kind for kind in left.columns.values() if kind in right.columns.values()]
    kind = draw.choice([kind for kind in shared if kind in {"int", "text"}] or shared or ["int"])
    return f"{column(draw, kind, Scope(left.columns))} = {column(draw, kind, Scope(right.columns))}"


def _test(draw: Draw, left: Relations, right: Relations) -> str:
    """Most often an equality."""
    if draw.chance(0.06):
        return condition(draw, Scope(left.columns | right.columns), fuel=1)
    if draw.chance(0.6):
        return _equality(draw, left, right)
    kind = draw.weighted({"int": 6.0, "text": 1.0})
    a = value(draw, kind, Scope(left.columns), fuel=1)
    b = value(draw, kind, Scope(right.columns), fuel=1)
    operator = draw.weighted({"=": 8.0, "<": 1.0, ">=": 1.0, "is not distinct from": 1.0, "<>": 0.3})
    return f"{a} {operator} {b}"


def _shared(left: Columns, right: Columns) -> list[str]:
    """Names that both sides have exactly once, with one kind."""
    sides = []
    for side in (left, right):
        bare = [name.split(".")[-1] for name in side]
        sides.append(
            {name.split(".")[-1]: kind for name, kind in side.items() if bare.count(name.split(".")[-1]) == 1}
        )
    return [name for name, kind in sides[0].items() if sides[1].get(name) == kind and kind != "any"]


def _kind_of(columns: Columns, bare: str) -> str:
    return next(kind for name, kind in columns.items() if name.split(".")[-1] == bare)
