"""Refuses what may never end, below something that PostgreSQL answers without reading all of it.

PostgreSQL stops a recursion, and a set-returning function in a select list, as soon as LIMIT, EXISTS, IN or
ANY has enough rows. Whatever we read of such a query by itself (a part, a state, either end of a window) has
no such stop, so it might run for ever. Therefore the query is kept whole, with its LIMIT: PostgreSQL
recomputes it. What surely ends, and what PostgreSQL too has to read to its end, is followed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from sqlglot import exp

from pgtrickle.plan.expressions import Expression, conjuncts
from pgtrickle.plan.expressions.bounded_calls import is_bounded
from pgtrickle.plan.expressions.constants import constant_number
from pgtrickle.plan.operators import (
    Aggregate,
    Filter,
    Itself,
    Join,
    Operator,
    Project,
    Recursive,
    TableFunction,
    Window,
)
from pgtrickle.plan.refusals import refuse
from pgtrickle.plan.rules import RULES
from pgtrickle.plan.rules.rule import READ_TO_THE_END, EarlyStop

_CYCLE_PATH: Final = "path of the cycle"


def require_end(op: Operator, stop: EarlyStop = READ_TO_THE_END) -> None:
    """Refuse a tree that reads more than PostgreSQL would of something that may never end."""
    if stop != READ_TO_THE_END:
        _require_end_of(op)
    for child, below in zip(op.children, RULES[type(op)].early_stops(op, stop), strict=True):
        require_end(child, below)


def _require_end_of(op: Operator) -> None:
    if isinstance(op, Recursive) and not _surely_ends(op):
        raise refuse("a recursion that may never end, below LIMIT, EXISTS, IN or ANY,")
    if isinstance(op, TableFunction) and not is_bounded(op.call.node):
        raise refuse(f"{op.call}, which may never end, below LIMIT, EXISTS, IN or ANY,")


def _surely_ends(recursion: Recursive) -> bool:
    """Whether the recursion makes finitely many rows, whatever the tables hold."""
    if any(column.name.startswith(_CYCLE_PATH) for column in recursion.columns):
        return True
    outputs = _outputs(recursion)
    if not recursion.is_all and all(_is_copied(output, recursion.step) for output in outputs):
        # only values that are there already, and no row twice
        return True
    itself = next(part for part in recursion.step.walk() if _is_itself(part, recursion))
    bounded = {name for part in _conditions(recursion.step) for name in _below_constant(part)}
    pairs = zip(itself.columns, outputs, strict=True)
    return any(own.name in bounded and _is_raised(output, own.name) for own, output in pairs)


def _is_itself(part: Operator, recursion: Recursive) -> bool:
    return isinstance(part, Itself) and part.name == recursion.name


def _outputs(recursion: Recursive) -> list[Expression]:
    """What each column of a step is made of, over what the step reads."""
    made: dict[str, Expression] = {}
    for part in recursion.step.walk():
        if isinstance(part, Project):
            made |= {c.name: e for c, e in zip(part.columns, part.expressions, strict=True)}
    return [_resolve(Expression(_column(c.name)), made) for c in recursion.step.columns]


def _column(name: str) -> exp.Expr:
    return exp.Column(this=exp.to_identifier(name, quoted=True))


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
    makers = (p for p in step.walk() if isinstance(p, (TableFunction, Aggregate, Window)))
    reads_itself = (p for p in makers if any(isinstance(below, Itself) for below in p.walk()))
    return not any(node.name in p.names and not _is_given(node.name, p) for p in reads_itself)


def _is_given(name: str, op: Operator) -> bool:
    return any(name in child.names for child in op.children)


def _conditions(op: Operator) -> Iterator[Expression]:
    """The conditions that every row of a step has to satisfy."""
    match op:
        case Project():
            yield from _conditions(op.child)
        case Filter():
            yield from conjuncts(op.condition)
            yield from _conditions(op.child)
        case Join():
            if op.condition is not None:
                yield from conjuncts(op.condition)
            yield from _conditions(op.left)
            yield from _conditions(op.right)


def _below_constant(condition: Expression) -> Iterator[str]:
    """The column that the condition keeps below a constant number."""
    node = condition.node.unnest()
    if isinstance(node, (exp.LT, exp.LTE)):
        column, bound = node.left.unnest(), node.right
    elif isinstance(node, (exp.GT, exp.GTE)):
        column, bound = node.right.unnest(), node.left
    else:
        return
    if isinstance(column, exp.Column) and constant_number(bound) is not None:
        yield column.name


def _is_raised(output: Expression, name: str) -> bool:
    """Whether the value is that of the column before, plus a whole number above zero."""
    node = output.node.unnest()
    if not isinstance(node, exp.Add):
        return False
    sides = (node.left.unnest(), node.right.unnest())
    columns = [side.name for side in sides if isinstance(side, exp.Column)]
    numbers = [digits for side in sides if (digits := constant_number(side)) is not None]
    return columns == [name] and len(numbers) == 1 and numbers[0].isdigit() and int(numbers[0]) > 0
