"""Both ends of a window at once, as Spark computes them: each row has its weight before and now.

Rows are lists, as in Spark: a row may be there several times, and operators fold where their SQL does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pgtrickle.plan.operators import (
    Aggregate,
    Answer,
    Call,
    Distinct,
    Filter,
    Join,
    Leaf,
    Mark,
    Nothing,
    Operator,
    OuterJoin,
    Project,
    SetKind,
    SetOperation,
    Single,
    Threshold,
    UnionAll,
)
from pgtrickle.plan.reads import Input, Role
from tests.laws.expressions import Named, is_true, value
from tests.laws.groups import MoreThanOneRow
from tests.laws.reading import Table
from tests.laws.rows import Row, crossing, matcher, naming, padding, positions
from tests.laws.zsets import ZSet
from tests.laws.zsets import folded as net

Ends = tuple[int, int]
Rows = list[tuple[Row, Ends]]
Tables = Mapping[str, Table]


def both_ends(op: Operator, tables: Tables) -> Rows:
    """The rows of a bound tree over what was read."""
    if isinstance(op, (Leaf, Answer)):
        return _input(op.input, tables)
    return LOWERINGS[type(op)](op, *(both_ends(child, tables) for child in op.children))


def end(rows: Rows, number: int) -> ZSet:
    """The rows at one end, folded."""
    return net((row, weights[number]) for row, weights in rows)


def change(rows: Rows) -> ZSet:
    """What changed between the ends, folded."""
    return net((row, now - before) for row, (before, now) in rows)


def _input(one: Input, tables: Tables) -> Rows:
    """Several reads together; where rows are taken off again, they are folded on the way to Spark."""
    rows: Rows = []
    for name, role in one.reads:
        rows += [(row, _ROLES[role](w)) for row, w, is_again in tables[name].found if not is_again]
    return _folded(rows) if any(before < 0 for _, (before, _) in rows) else rows


_ROLES: Mapping[Role, Callable[[int], Ends]] = {
    Role.CHANGE: lambda weight: (max(-weight, 0), max(weight, 0)),
    Role.BOTH: lambda weight: (weight, weight),
    Role.ONCE: lambda weight: (1, 1),
    Role.NOW: lambda weight: (0, weight),
    Role.BEFORE: lambda weight: (weight, 0),
}


def _folded(rows: Rows) -> Rows:
    total = _summed(rows)
    return [(row, weights) for row, weights in total.items() if weights != (0, 0)]


def _summed(pairs: Iterable[tuple[Row, Ends]]) -> dict[Row, Ends]:
    total: dict[Row, Ends] = {}
    for row, (before, now) in pairs:
        known = total.get(row, (0, 0))
        total[row] = (known[0] + before, known[1] + now)
    return total


def _total(weights: Iterable[Ends]) -> Ends:
    return _summed(((), w) for w in weights).get((), (0, 0))


def _nothing(op: Nothing) -> Rows:
    return []


def _filter(op: Filter, rows: Rows) -> Rows:
    named = naming(op)
    return [(row, w) for row, w in rows if is_true(op.condition, named(row))]


def _project(op: Project, rows: Rows) -> Rows:
    named = naming(op.child)
    return [(tuple(value(e, named(row)) for e in op.expressions), w) for row, w in rows]


def _union_all(op: UnionAll, *arms: Rows) -> Rows:
    return [pair for arm in arms for pair in arm]


def _join(op: Join, left: Rows, right: Rows) -> Rows:
    matches = matcher(op)
    pairs = [(a + b, (v[0] * w[0], v[1] * w[1])) for a, v in left for b, w in right if matches(a, b)]
    return [(row, w) for row, w in pairs if w != (0, 0)]


def _outer_join(op: OuterJoin, left: Rows, right: Rows) -> Rows:
    matches = matcher(op)
    found: Rows = []
    for a, v in _folded(left):
        partners = [(b, w) for b, w in right if matches(a, b)]
        found += [(a + b, (v[0] * w[0], v[1] * w[1])) for b, w in partners]
        found.append((a + padding(op.right), _alone(v, _total(w for _, w in partners))))
    if op.keeps_right:
        for b, w in _folded(right):
            counts = _total(v for a, v in left if matches(a, b))
            found.append((padding(op.left) + b, _alone(w, counts)))
    return [(row, w) for row, w in found if w != (0, 0)]


def _alone(weights: Ends, partners: Ends) -> Ends:
    before, now = (0 if count > 0 else weight for weight, count in zip(weights, partners, strict=True))
    return before, now


def _mark(op: Mark, left: Rows, right: Rows) -> Rows:
    matches = matcher(op)
    found: Rows = []
    for a, (before, now) in _folded(left) if op.condition else left:
        was, is_now = (count > 0 for count in _total(w for b, w in right if matches(a, b)))
        if was == is_now:
            found.append(((*a, is_now), (before, now)))
        else:
            found += [((*a, was), (before, 0)), ((*a, is_now), (0, now))]
    return found


def _threshold(op: Threshold, left: Rows, right: Rows) -> Rows:
    is_kept = crossing(op)
    pairs = [(a, (v[0] * w[0], v[1] * w[1])) for a, v in left for b, w in right if is_kept(a, b)]
    return [(row, w) for row, w in pairs if w != (0, 0)]


def _aggregate(op: Aggregate, rows: Rows) -> Rows:
    source = _folded(rows) if any(call.function not in {"count", "sum"} for call in op.calls) else rows
    groups: dict[Row, list[tuple[Named, Ends]]] = defaultdict(list)
    named = naming(op.child)
    for row, weights in source:
        known = named(row)
        groups[tuple(value(key.expression, known) for key in op.keys)].append((known, weights))
    if not op.keys:
        groups.setdefault((), [])
    found: Rows = []
    for key, members in groups.items():
        counts = _total(w for _, w in members)
        was, now = [tuple(_call(c, [(row, w[e]) for row, w in members]) for c in op.calls) for e in (0, 1)]
        is_before, is_now = [not op.keys or count > 0 for count in counts]
        if is_before and is_now and was == now:
            found.append((key + now, (1, 1)))
        else:
            found += [(key + was, (1, 0))] * is_before + [(key + now, (0, 1))] * is_now
    return found


def _call(call: Call, rows: list[tuple[Named, int]]) -> Any:
    """A call over the rows of a group with their weights at one end."""
    if call.argument is None:
        return sum(weight for _, weight in rows)
    operands = [(value(call.argument, row), weight) for row, weight in rows]
    if call.function == "count":
        return sum(weight for v, weight in operands if v is True)
    if call.function == "sum":
        held = [(v, weight) for v, weight in operands if v is not None]
        return sum(v * w for v, w in held) if sum(w for _, w in held) > 0 else None
    present = [v for v, weight in operands if v is not None and weight > 0]
    if call.function == "count_distinct":
        return len(set(present))
    best = min if call.function in {"min", "bool_and"} else max
    return best(present) if present else None


def _distinct(op: Distinct, rows: Rows) -> Rows:
    return [(row, (int(before > 0), int(now > 0))) for row, (before, now) in _summed(rows).items()]


def _set_operation(op: SetOperation, left: Rows, right: Rows) -> Rows:
    ours, theirs = _summed(left), _summed(right)
    return [
        (row, (_kept(op, lefts[0], rights[0]), _kept(op, lefts[1], rights[1])))
        for row in {**ours, **theirs}
        for lefts, rights in [(ours.get(row, (0, 0)), theirs.get(row, (0, 0)))]
    ]


def _kept(op: SetOperation, left: int, right: int) -> int:
    if op.kind is SetKind.INTERSECT:
        return min(left, right) if op.is_all else int(left > 0 and right > 0)
    return max(left - right, 0) if op.is_all else int(left > 0 and right <= 0)


def _single(op: Single, rows: Rows) -> Rows:
    places = positions(op, op.keys)
    counts = _summed((tuple(row[i] for i in places), w) for row, w in rows)
    if any(now > 1 for _, now in counts.values()):
        raise MoreThanOneRow
    return rows


LOWERINGS: Mapping[type[Operator], Callable[..., Rows]] = {
    Aggregate: _aggregate,
    Distinct: _distinct,
    Filter: _filter,
    Join: _join,
    Mark: _mark,
    Nothing: _nothing,
    OuterJoin: _outer_join,
    Project: _project,
    SetOperation: _set_operation,
    Single: _single,
    Threshold: _threshold,
    UnionAll: _union_all,
}
