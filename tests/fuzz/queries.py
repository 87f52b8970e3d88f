"""Whole queries drawn at random, each with one answer: where rows are chosen by order, the order is total."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.fuzz.aggregates import aggregate
from tests.fuzz.drawing import Draw, Query, Scope
from tests.fuzz.expressions import condition, literal, value
from tests.fuzz.grouping import grouped
from tests.fuzz.orders import expanded, in_order
from tests.fuzz.relations import Relations, relations
from tests.fuzz.tables import Columns, Table
from tests.fuzz.windows import windowed

COUNTS = {1: 4.0, 2: 5.0, 3: 2.0, 4: 0.5}
MOST_ROWS = 100_000
FEW = {1: 6.0, 2: 2.0}
KINDS = ("int", "int", "int", "text", "big", "num", "bool", "wide", "date", "stamp", "real", "code", "span")

Shape = Callable[[Draw, int, Columns], Query]


def drawn_query(seed: str, tables: Sequence[Table]) -> str:
    """A query over the tables, the same for the same seed."""
    draw = Draw(seed, tables, nested, scalar)
    depth = draw.choice([0, 1, 1, 2, 2, 3])
    prefix = "".join(_common(draw, depth)) if draw.chance(0.22) else ""
    found = _shaped(draw, depth, {})
    return prefix + (_top(draw, found) if draw.chance(0.12) else found.sql)


def query(draw: Draw, depth: int, outer: Columns) -> Query:
    """A query that stands in another and may read the columns around it; now and then with a WITH."""
    if depth == 0 or not draw.chance(0.08):
        return _shaped(draw, depth, outer)
    name, common = draw.name("q"), _shaped(draw, depth - 1, {})
    draw.ctes[name] = common.columns
    found = _shaped(draw, depth, outer)
    del draw.ctes[name]
    return Query(f"with {name} as ({common.sql}) {found.sql}", found.columns, found.is_ordered)


def _shaped(draw: Draw, depth: int, outer: Columns) -> Query:
    shape = draw.weighted(SHAPES)
    return shape(draw, depth, outer)


def nested(draw: Draw, scope: Scope, kinds: Sequence[str]) -> str:
    """A query for EXISTS, IN, ANY and ALL: correlated more often than not."""
    outer = scope.lent if draw.chance(0.7) else {}
    depth = scope.depth - 1
    if draw.chance(0.12):
        return _set_operation(draw, depth, outer, kinds).sql
    if draw.chance(0.12):
        return _group_rows(draw, depth, outer, kinds)
    found = _rows(draw, depth, outer, kinds)
    return found.sql.replace("select", "select distinct", 1) if draw.chance(0.08) else found.sql


def scalar(draw: Draw, scope: Scope, kinds: Sequence[str]) -> str:
    """A query with one column and at most one row."""
    outer = scope.lent if draw.chance(0.7) else {}
    depth = max(scope.depth - 1, 0)
    source = relations(draw, depth, outer, query, FEW)
    inner = Scope(source.columns, outer, depth)
    where = f" where {condition(draw, inner)}" if draw.chance(0.8) else ""
    if draw.chance(0.12):
        shown = value(draw, kinds[0], inner)
        return f"select {shown} from {source.sql}{where} order by 1 limit 1"
    call, _ = aggregate(draw, inner, kinds[0])
    return f"select {call} from {source.sql}{where}"


def _source(draw: Draw, depth: int, outer: Columns, counts: dict[int, float]) -> tuple[Relations, str]:
    """A FROM clause, and a WHERE clause on it or nothing."""
    source = relations(draw, depth, outer, query, counts)
    # what is correlated is so by its condition
    if not outer and draw.chance(0.65):
        return source, ""
    return source, f" where {condition(draw, Scope(source.columns, outer, depth))}"


def _rows(draw: Draw, depth: int, outer: Columns, kinds: Sequence[str] | None = None) -> Query:
    source, where = _source(draw, depth, outer, COUNTS)
    scope = Scope(source.columns, outer, depth)
    wanted = kinds or _kinds(draw, source.columns)
    outputs = {draw.alias(n): (value(draw, kind, scope), kind) for n, kind in enumerate(wanted)}
    return Query(f"select {_listed(outputs)} from {source.sql}{where}", _columns(outputs))


def _distinct(draw: Draw, depth: int, outer: Columns) -> Query:
    found = _rows(draw, depth, outer)
    return Query(found.sql.replace("select", "select distinct", 1), found.columns)


def _distinct_on(draw: Draw, depth: int, outer: Columns) -> Query:
    source, where = _source(draw, depth, outer, FEW)
    keys = draw.some(list(source.columns), 1, 2)
    outputs = {draw.alias(n): (name, source.columns[name]) for n, name in enumerate(keys)}
    for kind in draw.some(KINDS, 1, 2):
        outputs[draw.alias(len(outputs))] = (value(draw, kind, Scope(source.columns)), kind)
    rest = [name for name in source.columns if name not in keys]
    order = ", ".join([*keys, *(f"{name}{draw.choice(['', ' desc'])}" for name in rest)])
    shown = f"select distinct on ({', '.join(keys)}) {_listed(outputs)}"
    return Query(f"{shown} from {source.sql}{where} order by {order}", _columns(outputs), is_ordered=True)


def _groups(draw: Draw, depth: int, outer: Columns) -> Query:
    source, where = _source(draw, depth, outer, COUNTS)
    return grouped(draw, Scope(source.columns, outer, depth), f" from {source.sql}{where}")


def _group_rows(draw: Draw, depth: int, outer: Columns, kinds: Sequence[str]) -> str:
    """Groups of which only the keys are shown."""
    source, where = _source(draw, depth, outer, FEW)
    scope = Scope(source.columns, outer, depth)
    keys = [value(draw, kind, scope.alone, fuel=1) for kind in kinds]
    columns = [key for key in keys if key in source.columns]
    if len(columns) < len(keys):
        return _rows(draw, depth, outer, kinds).sql
    having = condition(draw, Scope({aggregate(draw, scope, "big")[0]: "big"}), fuel=1)
    listed = ", ".join(keys)
    return f"select {listed} from {source.sql}{where} group by {listed} having {having}"


def _windows(draw: Draw, depth: int, outer: Columns) -> Query:
    source, where = _source(draw, depth, outer, FEW)
    scope = Scope(source.columns, outer, depth)
    calls, clause = windowed(draw, scope, list(source.columns))
    outputs = {
        draw.alias(n): (value(draw, kind, scope, fuel=1), kind)
        for n, kind in enumerate(_kinds(draw, source.columns))
    }
    for call, kind in calls.items():
        shown = f"{call} + 1" if kind in {"int", "big"} and draw.chance(0.1) else call
        outputs[draw.alias(len(outputs))] = (shown, kind)
    return Query(f"select {_listed(outputs)} from {source.sql}{where}{clause}", _columns(outputs))


def _set_operation(draw: Draw, depth: int, outer: Columns, kinds: Sequence[str] | None = None) -> Query:
    wanted = list(kinds or draw.some(KINDS, 1, 3))
    arms = [_rows(draw, max(depth - 1, 0), outer, wanted) for _ in range(draw.choice([2, 2, 2, 3]))]
    sql = arms[0].sql
    for number, arm in enumerate(arms[1:]):
        word = draw.choice(["union", "intersect", "except"]) + draw.choice([" all", ""])
        left = f"({sql})" if number else sql
        sql = f"({arm.sql}) {word} {left}" if draw.chance(0.3) else f"{left} {word} {arm.sql}"
    return Query(sql, arms[0].columns)


def _limited(draw: Draw, depth: int, outer: Columns) -> Query:
    found = _rows(draw, depth, outer)
    return Query(_top(draw, found), found.columns, is_ordered=True)


def _top(draw: Draw, found: Query) -> str:
    """The first rows of a query, in the order of all its columns, or of some with their ties."""
    positions = draw.sample(range(1, len(found.columns) + 1), len(found.columns))
    order = ", ".join(f"{p}{draw.choice(['', '', ' desc', ' nulls first'])}" for p in positions)
    if draw.chance(0.2):
        few = order.split(", ")[: draw.randint(1, len(positions))]
        order, ties = ", ".join(few), f"fetch first {draw.randint(1, 3)} rows with ties"
        return f"{_unordered(draw, found)} order by {order} {ties}"
    offset = f" offset {draw.randint(1, 2)}" if draw.chance(0.3) else ""
    return f"{_unordered(draw, found)} order by {order} limit {draw.randint(1, 5)}{offset}"


def _unordered(draw: Draw, found: Query) -> str:
    return f"select * from ({found.sql}) {draw.name('r')}" if found.is_ordered else found.sql


def _in_order(draw: Draw, depth: int, outer: Columns) -> Query:
    """What depends on the order of a subquery."""
    return in_order(draw, draw.choice([_rows, _rows, _groups, _distinct])(draw, depth, {}))


def _expanded(draw: Draw, depth: int, outer: Columns) -> Query:
    """Functions that return sets in the select list."""
    source, where = _source(draw, depth, outer, FEW)
    shown = [name for name, kind in source.columns.items() if kind in KINDS]
    return expanded(draw, draw.some(shown, 1, 2), source.columns, f" from {source.sql}{where}")


def _constants(draw: Draw, depth: int, outer: Columns) -> Query:
    """Some of many equal rows, so that it does not matter which; or all rows, under a limit far away."""
    source, where = _source(draw, depth, outer, FEW)
    if draw.chance(0.3):
        found = _rows(draw, depth, outer)
        return Query(f"{found.sql} limit {MOST_ROWS}", found.columns, is_ordered=True)
    outputs = {draw.alias(n): (literal(draw, kind), kind) for n, kind in enumerate(draw.some(KINDS, 1, 2))}
    order = draw.choice(["", " order by 1", " order by 1 + 1"])
    cut = f"limit {draw.randint(1, 4)}{draw.choice(['', ' offset 2'])}"
    sql = f"select {_listed(outputs)} from {source.sql}{where}{order} {cut}"
    return Query(sql, _columns(outputs), is_ordered=True)


def _common(draw: Draw, depth: int) -> list[str]:
    """WITH and what it names; what follows may read the names, once or more often."""
    parts, is_recursive = [], False
    for _ in range(draw.choice([1, 1, 2])):
        name = draw.name("q")
        if draw.chance(0.25):
            sql, columns = _recursion(draw, name)
            parts.append(f"{name}({', '.join(columns)}) as ({sql})")
            is_recursive = True
        else:
            found = query(draw, max(depth - 1, 0), {})
            sql, columns = found.sql, found.columns
            parts.append(f"{name} as {draw.choice(['', '', 'materialized ', 'not materialized '])}({sql})")
        draw.ctes[name] = columns
    return ["with recursive " if is_recursive else "with ", ", ".join(parts), " "]


def _recursion(draw: Draw, name: str) -> tuple[str, Columns]:
    """Paths along the edges of `zeta`: all that can be reached, or those of a few steps."""
    where = f" where e.x {draw.choice(['=', '<', '<>'])} {draw.randint(0, 3)}" if draw.chance(0.5) else ""
    if draw.chance(0.6):
        step = f"select p.c0, e.y from {name} p join zeta e on e.x = p.c1"
        return f"select e.x, e.y from zeta e{where} union {step}", {"c0": "int", "c1": "int"}
    step = f"select e.y, p.c1 + 1 from {name} p join zeta e on e.x = p.c0 where p.c1 < 2"
    return f"select e.x, 0 from zeta e{where} union all {step}", {"c0": "int", "c1": "int"}


def _kinds(draw: Draw, columns: Columns) -> list[str]:
    """Kinds to show: of the columns at hand, and now and then others."""
    present = [kind for kind in columns.values() if kind != "any"] or ["int"]
    return [draw.choice(present if draw.chance(0.75) else KINDS) for _ in range(draw.randint(1, 4))]


def _listed(outputs: dict[str, tuple[str, str]]) -> str:
    return ", ".join(f"{expression} as {alias}" for alias, (expression, _) in outputs.items())


def _columns(outputs: dict[str, tuple[str, str]]) -> Columns:
    return {alias: kind for alias, (_, kind) in outputs.items()}


SHAPES: dict[Shape, float] = {
    _rows: 4.0,
    _groups: 4.0,
    _distinct: 1.0,
    _distinct_on: 0.7,
    _windows: 1.6,
    _set_operation: 1.5,
    _limited: 0.3,
    _constants: 0.15,
    _in_order: 0.9,
    _expanded: 0.5,
}
