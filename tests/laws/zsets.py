"""The oracle: relations as Z-sets in plain Python, and what each operator makes of them.

A Z-set is a Counter of rows. A row whose weights cancel stays in it with weight zero until an
operator folds, as it does in Spark: nothing may depend on whether someone has folded before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from pgtrickle.model.source import Source
from pgtrickle.model.stream_table import RelationId
from pgtrickle.plan.operators import (
    Aggregate,
    Call,
    Change,
    Distinct,
    Filter,
    Input,
    Join,
    Negate,
    Operator,
    Past,
    Project,
    Scan,
    SemiJoin,
    UnionAll,
)
from tests.laws.expressions import is_true, value

Row = tuple[Any, ...]
ZSet = Counter[Row]


@dataclass(frozen=True)
class World:
    """What can be read: every source before and after the window, and the reads made so far."""

    old: Mapping[RelationId, ZSet]
    new: Mapping[RelationId, ZSet]
    reads: dict[str, ZSet] = field(default_factory=dict)

    def change(self, relation: RelationId) -> ZSet:
        """The change of a source within the window."""
        return minus(self.new[relation], self.old[relation])

    @property
    def changed(self) -> frozenset[RelationId]:
        """The sources that have really changed."""
        return frozenset(relation for relation in self.new if folded(self.change(relation)))


def folded(rows: ZSet) -> ZSet:
    """Without the rows that net to zero; two Z-sets are equal if they are equal folded."""
    return Counter({row: weight for row, weight in rows.items() if weight})


def minus(left: ZSet, right: ZSet) -> ZSet:
    return _weighted([*left.items(), *((row, -weight) for row, weight in right.items())])


def chosen(op: Operator, rows: ZSet, names: Iterable[str]) -> ZSet:
    """The rows with only these columns, folded."""
    positions = [[c.name for c in op.columns].index(name) for name in names]
    return folded(
        _weighted((tuple(row[position] for position in positions), weight) for row, weight in rows.items())
    )


def named(op: Operator, row: Row) -> dict[str, Any]:
    """A row by its column names."""
    return dict(zip((c.name for c in op.columns), row, strict=True))


def scanned(scan: Scan, rows: ZSet) -> ZSet:
    """What a scan gives of rows of its source."""
    found: list[tuple[Row, int]] = []
    for row, weight in rows.items():
        known = dict(zip(scan.given, row, strict=True))
        if is_true(scan.condition.node if scan.condition else None, known):
            found.append((tuple(value(o.expression.node, known) for o in scan.outputs), weight))
    return _weighted(found)


def evaluated(op: Operator, world: World) -> ZSet:
    """The rows of an operator, in the order of its columns."""
    match op:
        case Scan():
            return scanned(op, world.new[op.source.relation])
        case Past():
            return scanned(op.scan, world.old[op.scan.source.relation])
        case Change():
            return scanned(op.scan, world.change(op.scan.source.relation))
        case Input():
            return world.reads[op.read.name]
        case UnionAll():
            return _weighted(pair for arm in op.arms for pair in evaluated(arm, world).items())
        case Join():
            return _joined(op, evaluated(op.left, world), evaluated(op.right, world))
        case SemiJoin():
            return _restricted(op, evaluated(op.child, world), evaluated(op.keys, world))
    (child,) = op.children
    rows = evaluated(child, world)
    match op:
        case Filter():
            kept = {row: w for row, w in rows.items() if is_true(op.condition.node, named(child, row))}
            return Counter(kept)
        case Project():
            return _weighted(
                (tuple(value(e.node, named(child, row)) for e in op.expressions), weight)
                for row, weight in rows.items()
            )
        case Negate():
            return Counter({row: -weight for row, weight in rows.items()})
        case Distinct():
            return Counter({row: 1 for row, weight in rows.items() if weight > 0})
        case Aggregate():
            return _grouped(op, folded(rows))
        case _:
            raise TypeError(type(op).__name__)


def _joined(op: Join, left: ZSet, right: ZSet) -> ZSet:
    found: list[tuple[Row, int]] = []
    for one, one_weight in left.items():
        for other, other_weight in right.items():
            row = named(op, one + other)
            equal = all(row[a] is not None and row[a] == row[b] for a, b in op.on)
            if equal and is_true(op.condition.node if op.condition else None, row):
                found.append((one + other, one_weight * other_weight))
    return _weighted(found)


def _restricted(op: SemiJoin, rows: ZSet, keys: ZSet) -> ZSet:
    """A key counts whatever its weight: it says that its rows may have changed."""
    width = len(op.on)
    known = {key[:width] for key in keys}
    return Counter(
        {
            row: weight
            for row, weight in rows.items()
            if tuple(value(on.node, named(op.child, row)) for on in op.on) in known
        }
    )


def _grouped(op: Aggregate, rows: ZSet) -> ZSet:
    def key(row: Row) -> Row:
        return tuple(value(k.expression.node, named(op.child, row)) for k in op.keys)

    ordered = sorted(rows, key=lambda row: str(key(row)))
    groups: list[tuple[Row, list[Row]]] = [(k, list(members)) for k, members in groupby(ordered, key)]
    if not op.keys and not groups:
        groups = [((), [])]
    found = []
    for k, members in groups:
        weighted = [(named(op.child, row), rows[row]) for row in members]
        found.append((k + tuple(aggregate(call, weighted) for call in op.calls), 1))
    return _weighted(found)


def aggregate(call: Call, rows: list[tuple[dict[str, Any], int]]) -> Any:
    """The value of a call over the rows of a group."""
    if call.argument is None:
        return sum(weight for _, weight in rows)
    values = [(value(call.argument.node, row), weight) for row, weight in rows]
    if call.function == "count":
        return sum(weight for v, weight in values if v is True)
    present = [(v, weight) for v, weight in values if v is not None]
    if not present:
        return None
    match call.function:
        case "sum":
            return sum(v * weight for v, weight in present)
        case "min" | "bool_and":
            return min(v for v, _ in present)
        case "max" | "bool_or":
            return max(v for v, _ in present)
        case _:
            raise ValueError(call.function)


def _weighted(pairs: Iterable[tuple[Row, int]]) -> ZSet:
    total: ZSet = Counter()
    for row, weight in pairs:
        total[row] += weight
    return total


def respects(source: Source, rows: ZSet) -> bool:
    """Whether no two rows share a key of the source, and no key has a null."""
    names = [column.name for column in source.columns]
    for key in source.keys:
        held = [tuple(row[names.index(name)] for name in key) for row in rows.elements()]
        if len(set(held)) < len(held) or any(None in values for values in held):
            return False
    return True
