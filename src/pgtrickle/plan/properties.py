"""What is known of a tree: the rule of its top answers, and asks the rules of the operators below."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from pgtrickle.plan.expressions import Expression, nulls
from pgtrickle.plan.operators import Operator, Scan
from pgtrickle.plan.rules import RULES, RuleKind
from pgtrickle.plan.rules.provenance import HeldBy, Places, places_in_child


def kind_of(op: Operator) -> RuleKind:
    """Which rows the operator needs besides the change."""
    return RULES[type(op)].kind(op)


def is_nullable(op: Operator, name: str) -> bool:
    """Whether a column can be null, as far as the tables and conditions tell."""
    return RULES[type(op)].is_nullable(op, name, is_nullable)


def can_be_null(op: Operator, expression: Expression) -> bool:
    """Whether an expression over the operator can be null."""
    return nulls.can_be_null(expression, lambda name: name not in op.names or is_nullable(op, name))


def is_unique(op: Operator, names: Set[str]) -> bool:
    """Whether no two rows agree in all columns of these names; nulls count as equal."""
    return RULES[type(op)].is_unique(op, names, is_unique)


def row_key(op: Operator) -> tuple[str, ...] | None:
    """Columns that identify each row: () for a single row, None if none are known."""
    return RULES[type(op)].row_key(op, row_key)


def has_one_row(op: Operator) -> bool:
    """Whether there is always exactly one row."""
    return RULES[type(op)].has_one_row(op)


def conditions_of(op: Operator) -> Iterable[Expression]:
    """The conditions that every row is known to satisfy."""
    return RULES[type(op)].conditions(op, conditions_of)


def narrowest(op: Operator, names: Set[str]) -> Operator:
    """The same rows, with these columns, without what was only put beside them."""
    child = RULES[type(op)].widened_child(op, names, is_unique)
    return op if child is None else narrowest(child, names)


def places_of(op: Operator, name: str) -> Places:
    """Where a column comes from, one level below."""
    return RULES[type(op)].places(op)(name)


def child_columns(op: Operator) -> Mapping[str, str]:
    """Which column of its only child each column of an operator is; computed ones are left out."""
    return places_in_child(op, RULES[type(op)].places(op))


def is_padded(op: Operator, name: str) -> bool:
    """Whether a column can be null because a row has no partner, so that its reads do not hold the null."""
    return any(
        place.is_padded or is_padded(op.children[place.child], place.column) for place in places_of(op, name)
    )


def origin(op: Operator, name: str) -> tuple[Scan, str] | None:
    """The scan, and its column, that a column of a tree is taken from unchanged."""
    if isinstance(op, Scan):
        return (op, name) if name in op.names else None
    places = places_of(op, name)
    return origin(op.children[places[0].child], places[0].column) if places else None


def reads_holding(op: Operator, columns: tuple[str, ...]) -> HeldBy:
    """The reads that together hold every combination of values that columns of a bound tree can have."""
    return RULES[type(op)].held_by(op, columns, reads_holding)
