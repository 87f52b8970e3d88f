"""Subqueries that give one row at most for each row of the surrounding query."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from pgtrickle.plan.analysis.block import Block
from pgtrickle.plan.analysis.columns import as_column, with_match
from pgtrickle.plan.analysis.context import Context
from pgtrickle.plan.analysis.copying import copy_operator, rename_columns
from pgtrickle.plan.analysis.correlation import correlation_keys, equal_sides, match_sides
from pgtrickle.plan.analysis.marks import attach_mark
from pgtrickle.plan.expressions import Expression, column
from pgtrickle.plan.operators import (
    Filter,
    Join,
    Operator,
    OuterJoin,
    Single,
    Values,
)
from pgtrickle.plan.properties import has_one_row, is_unique, narrowest


@dataclass(frozen=True, slots=True)
class Attached:
    """A surrounding query with a row of the block beside each of its rows.

    `is_there` tells whether the block has that row; None if it always has.
    """

    operator: Operator
    outputs: tuple[tuple[str, Expression], ...]
    is_there: Expression | None

    def value(self, number: int) -> Expression:
        """An output, null where there is no row."""
        _, expression = self.outputs[number]
        return null_unless(self.is_there, expression)


def null_unless(is_there: Expression | None, expression: Expression) -> Expression:
    """The expression where the condition holds, else null."""
    if is_there is None:
        return expression
    return Expression(exp.Case(ifs=[exp.If(this=is_there.node.copy(), true=expression.node.copy())]))


def attach_row(operator: Operator, block: Block, context: Context) -> Attached:
    """The only row of a block beside each row; more than one is an error."""
    if block.is_total:
        return attach_total(operator, block, context)
    if not block.correlated and has_one_row(block.operator):
        if isinstance(block.operator, Values):
            return Attached(operator, block.outputs, None)
        return Attached(Join(operator, block.operator, ()), block.outputs, None)
    return attach_left(operator, _single(operator, block, context), [], context)


def attach_total(operator: Operator, block: Block, context: Context) -> Attached:
    """The row of an aggregate without GROUP BY beside each row."""
    found = match_sides(operator, block.operator, list(block.correlated), context)
    joined = OuterJoin(found.left, found.right, found.on, found.condition)
    return Attached(joined, block.outputs, block.condition)


def attach_left(operator: Operator, block: Block, conditions: list[Expression], context: Context) -> Attached:
    """Each row beside those of the block that match, or beside nulls."""
    block = pad_block(block, context)
    needs_match = any(e.column is None or e.column not in block.operator.names for _, e in block.outputs)
    right, is_match = block.operator, None
    if needs_match:
        right, is_match = with_match(block.operator, context)
    found = match_sides(operator, right, [*block.correlated, *conditions], context)
    joined = OuterJoin(found.left, found.right, found.on, found.condition)
    shown = tuple(
        (name, e if e.column in right.names or is_match is None else null_unless(column(is_match), e))
        for name, e in block.outputs
    )
    return Attached(joined, shown, None)


def pad_block(block: Block, context: Context) -> Block:
    """The block with those outputs as columns that read no surrounding query: nulls can pad them."""
    operator = block.operator
    outputs = []
    for name, expression in block.outputs:
        if expression.columns <= operator.names:
            operator, own = as_column(operator, expression, context)
            expression = column(own)
        outputs.append((name, expression))
    return replace(block, operator=operator, outputs=tuple(outputs))


def may_be_several(block: Block) -> bool:
    """Whether the block can have more than one row for a row of the surrounding query."""
    if block.is_total or (not block.correlated and has_one_row(block.operator)):
        return False
    names = set()
    for condition in block.correlated:
        sides = equal_sides(condition, block.operator)
        if sides is not None and sides[0].column is not None:
            names.add(sides[0].column)
    return not is_unique(block.operator, names)


def _single(operator: Operator, block: Block, context: Context) -> Block:
    """The block with a check that each row of the surrounding query has one partner at most."""
    if not may_be_several(block):
        return block
    found = correlation_keys(block.operator, block.correlated, "a scalar subquery", context)
    child = found.operator
    if found.names:
        child = _restrict_to_asked(child, found.conditions, operator, context)
    return replace(block, operator=Single(child, found.names), correlated=found.conditions)


def _restrict_to_asked(
    child: Operator, conditions: tuple[Expression, ...], operator: Operator, context: Context
) -> Operator:
    """Only rows that some row of the surrounding query asks for: others may well come twice."""
    needed = {name for condition in conditions for name in condition.columns} - child.names
    asking, names = copy_operator(narrowest(operator, needed), context)
    wanted = Block(asking, (), tuple(rename_columns(condition, names) for condition in conditions))
    marks, is_asked_for = attach_mark(child, wanted, [], context)
    return Filter(marks, is_asked_for)
