"""Leaves out the columns that nobody reads, down to the scans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from pgtrickle.model.source import PgType
from pgtrickle.plan.analysis.uniqueness import is_unique
from pgtrickle.plan.carriers import carrier_of
from pgtrickle.plan.expressions import Expression, column, raw
from pgtrickle.plan.operators import (
    Aggregate,
    Column,
    Distinct,
    Evaluated,
    Filter,
    Itself,
    Join,
    Mark,
    Operator,
    OuterJoin,
    Project,
    Recursive,
    Scan,
    ScanColumn,
    SetOperation,
    Single,
    TableFunction,
    Top,
    UnionAll,
    Values,
    Window,
)
from pgtrickle.plan.trees import with_children

Names = frozenset[str]


def pruned(op: Operator, needed: Iterable[str]) -> Operator:
    """The operator with only the needed columns, and those that it reads itself, kept below."""
    return _pruned(op, frozenset(needed))


def as_written(op: Operator, needed: Iterable[str]) -> Operator:
    """The same for PostgreSQL, which evaluates every call as the query has it."""
    return _pruned_inside(op, frozenset(needed))


def _pruned(op: Operator, names: Names) -> Operator:
    return _RULES[type(op)](op, names)


def _scan(op: Scan, names: Names) -> Operator:
    kept = tuple(output for output in op.outputs if output.column.name in names)
    return replace(op, outputs=kept or (_presence(op),))


def _presence(op: Scan) -> ScanColumn:
    """That a row is there, and nothing of it: a column that the query does not name is not captured."""
    name = op.outputs[0].column.name if op.outputs else op.alias
    pg_type = PgType("integer", "integer", "b", "N")
    return ScanColumn(Column(name, pg_type, carrier_of(pg_type)), Expression(raw("1")))


def _filter(op: Filter, names: Names) -> Operator:
    return replace(op, child=_pruned(op.child, names | op.condition.columns))


def _project(op: Project, names: Names) -> Operator:
    pairs = [(c, e) for c, e in zip(op.columns, op.expressions, strict=True) if c.name in names]
    pairs = pairs or [(op.columns[0], op.expressions[0])]
    read = _columns(expression for _, expression in pairs)
    return Project(_pruned(op.child, read), tuple(c for c, _ in pairs), tuple(e for _, e in pairs))


def _pairs(op: Join | OuterJoin | Mark, names: Names) -> Operator:
    if isinstance(op, Mark) and op.column_.name not in names:
        return _pruned(op.left, names)
    if isinstance(op, OuterJoin) and _is_unread(op, names):
        return _pruned(op.left, names)
    read = names | {name for pair in op.on for name in pair}
    if op.condition:
        read |= op.condition.columns
    left, right = _pruned(op.left, read & op.left.names), _pruned(op.right, read & op.right.names)
    return replace(op, left=left, right=right)


def _is_unread(op: OuterJoin, names: Names) -> bool:
    """Whether the join only puts values beside its left rows that nobody reads.

    PostgreSQL does not evaluate those either: a subquery with several rows is no error there.
    """
    if op.keeps_right or names & op.right.names:
        return False
    return is_unique(op.right, {own for _, own in op.on})


def _union_all(op: UnionAll, names: Names) -> Operator:
    positions = [i for i, c in enumerate(op.columns) if c.name in names] or [0]
    return UnionAll(tuple(_only(arm, [arm.columns[i].name for i in positions]) for arm in op.arms))


def _only(op: Operator, names: list[str]) -> Operator:
    """The operator with exactly these columns: arms are matched by position."""
    below = _pruned(op, frozenset(names))
    if [c.name for c in below.columns] == names:
        return below
    kept = tuple(below.column(name) for name in names)
    return Project(below, kept, tuple(column(c.name) for c in kept))


def _whole(op: Distinct | SetOperation | Recursive, names: Names) -> Operator:
    return with_children(op, tuple(_only(child, [c.name for c in child.columns]) for child in op.children))


def _aggregate(op: Aggregate, names: Names) -> Operator:
    calls = tuple(call for call in op.calls if call.column.name in names)
    read = _columns(key.expression for key in op.keys)
    read |= _columns(call.argument for call in calls if call.argument is not None)
    read |= _columns(call.expression for call in calls if call.function is None) & op.child.names
    return Aggregate(_pruned(op.child, read), op.keys, calls)


def _single(op: Single, names: Names) -> Operator:
    return replace(op, child=_pruned(op.child, names | set(op.keys)))


def _top(op: Top, names: Names) -> Operator:
    read = names | set(op.partition) | {ordering.column for ordering in op.order}
    return replace(op, child=_pruned(op.child, read))


def _window(op: Window, names: Names) -> Operator:
    calls = tuple(call for call in op.calls if call.column.name in names)
    if not calls:
        return _pruned(op.child, names)
    read = (names & op.child.names) | set(op.partition) | _columns(call.expression for call in calls)
    return replace(op, child=_pruned(op.child, read), calls=calls)


def _table_function(op: TableFunction, names: Names) -> Operator:
    read = names | op.call.columns | (op.condition.columns if op.condition else frozenset())
    return replace(op, child=_pruned(op.child, read & op.child.names))


def _evaluated(op: Evaluated, names: Names) -> Operator:
    return replace(op, child=_pruned_inside(op.child, names))


def _pruned_inside(op: Operator, names: Names) -> Operator:
    """Below what PostgreSQL evaluates, aggregates are as they are written."""
    return _pruned(_as_written(op), names)


def _as_written(op: Operator) -> Operator:
    below = with_children(op, tuple(_as_written(child) for child in op.children))
    if isinstance(below, Aggregate):
        return replace(below, calls=tuple(replace(c, function=None, argument=None) for c in below.calls))
    return below


def _columns(expressions: Iterable[Expression]) -> Names:
    return frozenset(name for expression in expressions for name in expression.columns)


_RULES: Mapping[type[Operator], Callable[[Any, Names], Operator]] = {
    Aggregate: _aggregate,
    Distinct: _whole,
    Evaluated: _evaluated,
    Filter: _filter,
    Itself: lambda op, names: op,
    Join: _pairs,
    Mark: _pairs,
    OuterJoin: _pairs,
    Project: _project,
    Recursive: _whole,
    Scan: _scan,
    SetOperation: _whole,
    Single: _single,
    TableFunction: _table_function,
    Top: _top,
    UnionAll: _union_all,
    Values: lambda op, names: op,
    Window: _window,
}
