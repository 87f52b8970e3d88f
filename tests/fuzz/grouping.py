"""Groups: keys and grouping sets, aggregates, HAVING, and window functions above them."""

from __future__ import annotations

from tests.fuzz.aggregates import aggregate
from tests.fuzz.drawing import Draw, Query, Scope
from tests.fuzz.expressions import condition, value
from tests.fuzz.tables import Columns
from tests.fuzz.windows import windowed


def grouped(draw: Draw, scope: Scope, source: str) -> Query:
    """A query with GROUP BY, or with aggregates alone, over `source` with the columns of `scope`."""
    keys = _keys(draw, scope)
    has_sets = len(keys) > 0 and draw.chance(0.18)
    calls = dict(aggregate(draw, scope) for _ in range(draw.randint(1, 3)))
    shown = {key: kind for key, kind in keys.items() if draw.chance(0.9)} | calls
    if has_sets:
        told = f"grouping({', '.join(keys)})"
        shown |= {f"(select {told})" if draw.chance(0.2) else told: "int"}
    above, clause = dict[str, str](), ""
    groups = Scope({**keys, **calls}, scope.outer, scope.depth)
    if keys and not has_sets and draw.chance(0.12):
        above, clause = windowed(draw, groups, list(keys))
    if draw.chance(0.15):
        shown |= _computed(draw, groups)
    if draw.chance(0.08):
        shown |= _lifted(draw, scope)
    having = f" having {_test(draw, groups, scope)}" if draw.chance(0.3) else ""
    outputs = {draw.alias(n): item for n, item in enumerate((shown | above).items())}
    listed = ", ".join(f"{expression} as {alias}" for alias, (expression, _) in outputs.items())
    sql = f"select {listed}{source}{_group_by(draw, keys, has_sets)}{having}{clause}"
    return Query(sql, {alias: kind for alias, (_, kind) in outputs.items()})


def _keys(draw: Draw, scope: Scope) -> Columns:
    """What rows are grouped by: columns, and now and then something computed of them."""
    count = draw.weighted({0: 1.0, 1: 4.0, 2: 2.0, 3: 0.5})
    names = draw.some([name for name, kind in scope.own.items() if kind != "any"], count, count)
    keys = {name: scope.own[name] for name in names}
    if count and draw.chance(0.25):
        kind = draw.choice(["int", "text", "bool"])
        key = value(draw, kind, scope.alone, fuel=1)
        if any(name in key for name in scope.own):
            keys[key] = kind
    if count and draw.chance(0.02):
        keys["(2 + 3)"] = "int"
    return keys


def _group_by(draw: Draw, keys: Columns, has_sets: bool) -> str:
    if not keys:
        return ""
    listed = list(keys)
    if not has_sets:
        return f" group by {', '.join(listed)}"
    kind = draw.choice(["rollup", "cube", "grouping sets"])
    if kind != "grouping sets":
        return f" group by {kind} ({', '.join(listed)})"
    sets = [f"({', '.join(draw.some(listed, 0, len(listed)))})" for _ in range(draw.randint(1, 2))]
    return f" group by grouping sets ({', '.join([*sets, '(' + ', '.join(listed) + ')'])})"


def _computed(draw: Draw, groups: Scope) -> Columns:
    """Something computed of keys and aggregates, perhaps with a subquery."""
    kind = draw.choice(["int", "big", "wide", "text", "bool"])
    return {value(draw, kind, groups, fuel=2): kind}


def _lifted(draw: Draw, scope: Scope) -> Columns:
    """An aggregate of this query that stands in a subquery, perhaps over what another subquery says."""
    names = [name for name, kind in scope.own.items() if kind == "int" and "(" not in name]
    if names and scope.depth and draw.chance(0.4):
        inner = draw.scalar(draw, Scope(scope.own, {}, scope.depth - 1), ["int"])
        return {f"(select max(({inner})))": "int"} if any(name in inner for name in names) else {}
    call, kind = aggregate(draw, scope)
    return {f"(select {call})": kind}


def _test(draw: Draw, groups: Scope, scope: Scope) -> str:
    if draw.chance(0.5):
        call, _ = aggregate(draw, scope, "big")
        return f"{call} {draw.choice(['>', '<', '=', '<>'])} {draw.randint(0, 3)}"
    return condition(draw, groups, fuel=2)
