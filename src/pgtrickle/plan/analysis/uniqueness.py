"""Which columns identify a row, as far as keys of tables and the operators tell."""

from __future__ import annotations

from collections.abc import Set

from pgtrickle.plan.operators import (
    Aggregate,
    Distinct,
    Evaluated,
    Filter,
    Join,
    Mark,
    Operator,
    OuterJoin,
    Project,
    Scan,
    Single,
    Top,
    Values,
    Window,
)


def is_unique(operator: Operator, names: Set[str]) -> bool:
    """Whether no two rows agree in all columns of these names; nulls count as equal."""
    if isinstance(operator, Scan):
        return _scan(operator, names)
    if isinstance(operator, (Filter, Window, Evaluated)):
        return is_unique(operator.child, names & operator.child.names)
    if isinstance(operator, Mark):
        return is_unique(operator.left, names & operator.left.names)
    if isinstance(operator, Project):
        pairs = zip(operator.columns, operator.expressions, strict=True)
        return is_unique(operator.child, {e.column for c, e in pairs if c.name in names and e.column})
    if isinstance(operator, Aggregate):
        return {key.column.name for key in operator.keys} <= names
    if isinstance(operator, Distinct):
        return operator.names <= names
    if isinstance(operator, Top):
        is_first = operator.limit == 1 and not operator.has_ties
        return (is_first and set(operator.partition) <= names) or is_unique(operator.child, names)
    if isinstance(operator, Single):
        return set(operator.keys) <= names or is_unique(operator.child, names)
    if isinstance(operator, Join):
        return _join(operator, names)
    if isinstance(operator, OuterJoin) and not operator.keeps_right:
        return _join(operator, names)
    return False


def _scan(scan: Scan, names: Set[str]) -> bool:
    given = {scan.expression(name).column for name in names & scan.names}
    known = {scan.source_column(name) for name in given if name is not None}
    return any(known.issuperset(key) for key in scan.source.keys)


def _join(join: Join | OuterJoin, names: Set[str]) -> bool:
    """One side is known by its own columns, the other by its own and what they are equal to."""
    left, right = names & join.left.names, names & join.right.names
    if is_unique(join.left, left) and is_unique(join.right, right | {other for _, other in join.on}):
        return True
    if isinstance(join, OuterJoin):
        return False
    return is_unique(join.right, right) and is_unique(join.left, left | {own for own, _ in join.on})


def row_key(operator: Operator) -> tuple[str, ...] | None:
    """Columns that identify each row of the operator: () for a single row, None if none are known."""
    if isinstance(operator, Values):
        return () if not operator.columns else None
    if isinstance(operator, Scan):
        given = {c.name: name for c, name in zip(operator.source.columns, operator.given, strict=True)}
        keys = (tuple(given[name] for name in key) for key in operator.source.keys)
        return next((key for key in keys if operator.names.issuperset(key)), None)
    if isinstance(operator, Aggregate):
        return tuple(key.column.name for key in operator.keys)
    if isinstance(operator, (Join, OuterJoin)):
        left, right = row_key(operator.left), row_key(operator.right)
        is_padded = isinstance(operator, OuterJoin) and operator.keeps_right
        return None if left is None or right is None or is_padded else (*left, *right)
    if isinstance(operator, Mark):
        return row_key(operator.left)
    if isinstance(operator, (Filter, Window, Top, Single)):
        return row_key(operator.child)
    if isinstance(operator, Project):
        own = {e.column: c.name for c, e in zip(operator.columns, operator.expressions, strict=True)}
        below = row_key(operator.child)
        return None if below is None or not own.keys() >= set(below) else tuple(own[name] for name in below)
    return tuple(c.name for c in operator.columns) if isinstance(operator, Distinct) else None
