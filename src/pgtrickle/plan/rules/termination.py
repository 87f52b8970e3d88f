"""Whether a recursion surely ends: by the values that its step makes, or by a number that it counts up to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from sqlglot import exp

from pgtrickle.plan.expressions import Expression, column
from pgtrickle.plan.expressions.constants import constant_number
from pgtrickle.plan.operators import (
    Aggregate,
    Itself,
    Operator,
    Project,
    Recursive,
    TableFunction,
    UnionAll,
    Window,
)

_CYCLE_PATH: Final = "path of the cycle"


def surely_ends(recursion: Recursive, conditions: Iterable[Expression]) -> bool:
    """Whether the recursion makes finitely many rows, whatever the tables hold.

    Every row of its step satisfies the conditions.
    """
    if any(c.name.startswith(_CYCLE_PATH) for c in recursion.columns):
        return True
    outputs = _outputs(recursion.step)
    if not recursion.is_all and all(_is_copied(output, recursion.step) for output in outputs):
        # only values that are there already, and no row twice
        return True
    itself = next(part for part in recursion.step.walk() if _is_itself(part, recursion))
    bounded = {name for condition in conditions for name in _below_constant(condition)}
    pairs = zip(itself.columns, outputs, strict=True)
    return any(own.name in bounded and _is_raised(output, own.name) for own, output in pairs)


def _is_itself(part: Operator, recursion: Recursive) -> bool:
    return isinstance(part, Itself) and part.name == recursion.name


def _outputs(step: Operator) -> list[Expression]:
    """What each column of a step is made of, over what the step reads."""
    made = dict(_projections(step))
    return [_resolve(column(c.name), made) for c in step.columns]


def _projections(step: Operator) -> Iterator[tuple[str, Expression]]:
    """The columns of projections with their expressions, except below a union: there each arm has its own."""
    if isinstance(step, UnionAll):
        return
    if isinstance(step, Project):
        yield from ((c.name, e) for c, e in zip(step.columns, step.expressions, strict=True))
    for child in step.children:
        yield from _projections(child)


def _resolve(expression: Expression, made: Mapping[str, Expression]) -> Expression:
    while expression.columns & made.keys():
        name = expression.column
        # a projection that gives a column on under its own name says nothing more of it
        if name is not None and made[name].column == name:
            return expression
        expression = expression.substitute({n: made[n] for n in expression.columns & made.keys()})
    return expression


def _is_copied(output: Expression, step: Operator) -> bool:
    """Whether the value comes from a table, from the step before, or is a constant."""
    if not output.columns:
        return True
    node = output.node.unnest()
    while isinstance(node, exp.Cast):
        node = node.this.unnest()
    if not isinstance(node, exp.Column):
        return False
    shown_by = (part for part in step.walk() if node.name in part.names and _reads_itself(part))
    return all(_copies(part, node.name) for part in shown_by)


def _copies(part: Operator, name: str) -> bool:
    """Whether a part of the step makes no values of its own for the column; projections are seen through."""
    if isinstance(part, UnionAll):
        position = [c.name for c in part.columns].index(name)
        return all(_is_copied(_outputs(arm)[position], arm) for arm in part.arms)
    return not isinstance(part, (TableFunction, Aggregate, Window)) or _is_given(name, part)


def _reads_itself(part: Operator) -> bool:
    return any(isinstance(below, Itself) for below in part.walk())


def _is_given(name: str, op: Operator) -> bool:
    return any(name in child.names for child in op.children)


def _below_constant(condition: Expression) -> Iterator[str]:
    """The column that the condition keeps below a constant number."""
    node = condition.node.unnest()
    if isinstance(node, (exp.LT, exp.LTE)):
        bounded, limit = node.left.unnest(), node.right
    elif isinstance(node, (exp.GT, exp.GTE)):
        bounded, limit = node.right.unnest(), node.left
    else:
        return
    if isinstance(bounded, exp.Column) and constant_number(limit) is not None:
        yield bounded.name


def _is_raised(output: Expression, name: str) -> bool:
    """Whether the value is that of the column before, plus a whole number above zero."""
    node = output.node.unnest()
    if not isinstance(node, exp.Add):
        return False
    sides = (node.left.unnest(), node.right.unnest())
    columns = [side.name for side in sides if isinstance(side, exp.Column)]
    numbers = [digits for side in sides if (digits := constant_number(side)) is not None]
    return columns == [name] and len(numbers) == 1 and numbers[0].isdigit() and int(numbers[0]) > 0
