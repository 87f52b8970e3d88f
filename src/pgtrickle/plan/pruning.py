"""Leaves out the columns that nobody reads, down to the scans."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pgtrickle.model.source import PgType
from pgtrickle.plan.carriers import carrier_of
from pgtrickle.plan.expressions import Expression, raw
from pgtrickle.plan.operators import (
    Aggregate,
    Column,
    Distinct,
    Filter,
    Join,
    Operator,
    Project,
    Scan,
    ScanColumn,
    UnionAll,
)


def pruned(op: Operator, needed: Iterable[str]) -> Operator:
    """The operator with only the needed columns, and those that it reads itself, kept below."""
    names = frozenset(needed)
    if isinstance(op, Scan):
        kept = tuple(output for output in op.outputs if output.column.name in names)
        return replace(op, outputs=kept or (_presence(op),))
    if isinstance(op, Filter):
        return replace(op, child=pruned(op.child, names | op.condition.columns))
    if isinstance(op, Join):
        return _join(op, names)
    if isinstance(op, Project):
        return _project(op, names)
    if isinstance(op, UnionAll):
        positions = [i for i, c in enumerate(op.columns) if c.name in names] or [0]
        return UnionAll(tuple(pruned(arm, [arm.columns[i].name for i in positions]) for arm in op.arms))
    if isinstance(op, Distinct):
        return Distinct(pruned(op.child, op.child.names))
    if isinstance(op, Aggregate):
        return _aggregate(op, names)
    raise TypeError(type(op).__name__)


def _presence(op: Scan) -> ScanColumn:
    """That a row is there, and nothing of it: a column that the query does not name is not captured."""
    name = op.outputs[0].column.name if op.outputs else op.alias
    pg_type = PgType("integer", "integer", "b", "N")
    return ScanColumn(Column(name, pg_type, carrier_of(pg_type)), Expression(raw("1")))


def _join(op: Join, names: frozenset[str]) -> Join:
    read = names | {name for pair in op.on for name in pair}
    if op.condition:
        read |= op.condition.columns
    left, right = pruned(op.left, read & op.left.names), pruned(op.right, read & op.right.names)
    return replace(op, left=left, right=right)


def _project(op: Project, names: frozenset[str]) -> Project:
    pairs = [(c, e) for c, e in zip(op.columns, op.expressions, strict=True) if c.name in names]
    pairs = pairs or [(op.columns[0], op.expressions[0])]
    read = _columns(expression for _, expression in pairs)
    return Project(pruned(op.child, read), tuple(c for c, _ in pairs), tuple(e for _, e in pairs))


def _aggregate(op: Aggregate, names: frozenset[str]) -> Aggregate:
    calls = tuple(call for call in op.calls if call.column.name in names)
    read = _columns(key.expression for key in op.keys)
    read |= _columns(call.argument for call in calls if call.argument is not None)
    return Aggregate(pruned(op.child, read), op.keys, calls)


def _columns(expressions: Iterable[Expression]) -> frozenset[str]:
    return frozenset(name for expression in expressions for name in expression.columns)
