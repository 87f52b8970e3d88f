"""The oracle: what a tree is at one end of a window, with the plain bags of SQL.

A Z-set is a Counter of rows, whose weights may be negative; a bag is one without negative weights.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pgtrickle.model.stream_table import RelationId
from pgtrickle.plan.operators import (
    Aggregate,
    Answer,
    Distinct,
    Evaluated,
    Filter,
    Itself,
    Join,
    Leaf,
    Mark,
    Nothing,
    Operator,
    OuterJoin,
    Project,
    Recursive,
    Scan,
    SetKind,
    SetOperation,
    Single,
    TableFunction,
    Threshold,
    Top,
    UnionAll,
    Values,
    Window,
)
from tests.laws.expressions import NOW, is_true, value
from tests.laws.groups import grouped, listed, made, single, topmost, windowed
from tests.laws.rows import Row, Rows, crossing, matcher, naming, padding

ZSet = Counter[Row]
Bags = Mapping[RelationId, ZSet]


@dataclass(frozen=True)
class World:
    """Every source before and after the window, and the clock, which is a number here."""

    old: Bags
    new: Bags
    before: int = 1
    now: int = 1

    def change(self, relation: RelationId) -> ZSet:
        """The change of a source within the window, net."""
        return minus(self.new[relation], self.old[relation])

    @property
    def changed(self) -> frozenset[RelationId]:
        """The sources that have really changed."""
        return frozenset(relation for relation in self.new if self.change(relation))


def folded(rows: Iterable[tuple[Row, int]]) -> ZSet:
    """Each row once with its net weight; those that net to zero are gone."""
    total: ZSet = Counter()
    for row, weight in rows:
        total[row] += weight
    return Counter({row: weight for row, weight in total.items() if weight})


def minus(left: ZSet, right: ZSet) -> ZSet:
    return folded([*left.items(), *((row, -weight) for row, weight in right.items())])


def chosen(op: Operator, rows: ZSet, names: Iterable[str]) -> ZSet:
    """The rows with only these columns, folded."""
    positions = [[c.name for c in op.columns].index(name) for name in names]
    return folded((tuple(row[position] for position in positions), w) for row, w in rows.items())


def truth(op: Operator, bags: Bags, clock: int = 1) -> ZSet:
    """What a tree is when its sources hold these bags, at this time."""

    def scanned(leaf: Operator) -> ZSet:
        assert isinstance(leaf, Scan)
        rows = bags[leaf.source.relation].items()
        found = ((dict(zip(leaf.given, row, strict=True)) | {NOW: clock}, weight) for row, weight in rows)
        return folded(
            (tuple(value(output.expression, row) for output in leaf.outputs), weight)
            for row, weight in found
            if is_true(leaf.condition, row)
        )

    return over_leaves(op, scanned)


def over_leaves(op: Operator, rows_of: Callable[[Operator], ZSet]) -> ZSet:
    """What a tree is when its leaves have these rows."""
    if isinstance(op, (Scan, Leaf, Answer, Itself)):
        return rows_of(op)
    if isinstance(op, Recursive):
        return _repeated(op, rows_of)
    children = [over_leaves(child, rows_of).items() for child in op.children]
    return folded(_MEANINGS[type(op)](op, *children))


def _repeated(op: Recursive, rows_of: Callable[[Operator], ZSet]) -> ZSet:
    """What the step makes of its own rows, until it makes none."""
    found: ZSet = ZSet()
    made = over_leaves(op.base, rows_of)
    while made:
        fresh = made if op.is_all else ZSet({row: 1 for row in made if row not in found})
        found = found + fresh

        def known(leaf: Operator, fresh: ZSet = fresh) -> ZSet:
            return fresh if isinstance(leaf, Itself) and leaf.name == op.name else rows_of(leaf)

        made = over_leaves(op.step, known) if fresh else ZSet()
    return found


def _filter(op: Filter, rows: Rows) -> Rows:
    named = naming(op)
    return [(row, w) for row, w in rows if is_true(op.condition, named(row))]


def _project(op: Project, rows: Rows) -> Rows:
    named = naming(op.child)
    for row, weight in rows:
        known = named(row)
        yield tuple(value(e, known) for e in op.expressions), weight


def _join(op: Join, left: Rows, right: Rows) -> Rows:
    matches = matcher(op)
    return [(a + b, v * w) for a, v in left for b, w in right if matches(a, b)]


def _outer_join(op: OuterJoin, left: Rows, right: Rows) -> Rows:
    matches = matcher(op)
    for a, v in left:
        partners = [(b, w) for b, w in right if matches(a, b)]
        yield from ((a + b, v * w) for b, w in partners or [(padding(op.right), 1)])
    if op.keeps_right:
        yield from ((padding(op.left) + b, w) for b, w in right if not any(matches(a, b) for a, _ in left))


def _mark(op: Mark, left: Rows, right: Rows) -> Rows:
    matches = matcher(op)
    return [((*a, any(matches(a, b) for b, _ in right)), v) for a, v in left]


def _threshold(op: Threshold, left: Rows, right: Rows) -> Rows:
    is_kept = crossing(op)
    return [(a, v * w) for a, v in left for b, w in right if is_kept(a, b)]


def _set_operation(op: SetOperation, left: Rows, right: Rows) -> Rows:
    other = dict(right)
    for row, ours in left:
        theirs = other.get(row, 0)
        if op.is_all:
            yield row, min(ours, theirs) if op.kind is SetKind.INTERSECT else max(ours - theirs, 0)
        else:
            yield row, int((theirs > 0) == (op.kind is SetKind.INTERSECT))


def _distinct(op: Distinct, rows: Rows) -> Rows:
    return [(row, 1) for row, _ in rows]


def _union_all(op: UnionAll, *arms: Rows) -> Rows:
    return [pair for arm in arms for pair in arm]


def _itself(op: Evaluated, rows: Rows) -> Rows:
    return rows


def _nothing(op: Nothing) -> Rows:
    return []


_MEANINGS: Mapping[type[Operator], Callable[..., Any]] = {
    Aggregate: grouped,
    Distinct: _distinct,
    Evaluated: _itself,
    Filter: _filter,
    Join: _join,
    Mark: _mark,
    Nothing: _nothing,
    OuterJoin: _outer_join,
    Project: _project,
    SetOperation: _set_operation,
    Single: single,
    TableFunction: made,
    Threshold: _threshold,
    Top: topmost,
    UnionAll: _union_all,
    Values: listed,
    Window: windowed,
}
