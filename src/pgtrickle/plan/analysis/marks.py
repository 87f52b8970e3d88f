"""EXISTS, IN, ANY and ALL as marks: columns that tell whether the subquery has a match.

`x op ALL (…)` is NOT `x (not op) ANY (…)`, so ANY is all there is; IN is `= ANY`. It is true if some
row compares as true, else null if some row compares as null, else false.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from pgtrickle.model.source import PgType
from pgtrickle.plan.analysis.block import Block
from pgtrickle.plan.analysis.context import Context
from pgtrickle.plan.analysis.copying import copy_block
from pgtrickle.plan.analysis.correlation import match_sides
from pgtrickle.plan.carriers import carrier_of
from pgtrickle.plan.expressions import Expression, column
from pgtrickle.plan.expressions.nulls import COMPARISONS
from pgtrickle.plan.operators import Column, Mark, Operator
from pgtrickle.plan.properties import can_be_null

BOOLEAN = PgType("boolean", "boolean", "b", "B")

_OPPOSITE: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.NEQ,
    exp.NEQ: exp.EQ,
    exp.LT: exp.GTE,
    exp.LTE: exp.GT,
    exp.GT: exp.LTE,
    exp.GTE: exp.LT,
}


def attach_mark(
    operator: Operator, block: Block, comparisons: list[Expression], context: Context
) -> tuple[Operator, Expression]:
    """The operator with a mark for the rows that have a partner in the block, and the mark."""
    found = match_sides(operator, block.operator, [*block.correlated, *comparisons], context)
    mark = Column(context.unique("is_found"), BOOLEAN, carrier_of(BOOLEAN))
    return Mark(found.left, found.right, found.on, found.condition, mark), column(mark.name)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Values of a row compared with the outputs of a block; several by equality only."""

    values: tuple[Expression, ...]
    kind: type[exp.Expr]
    block: Block
    is_negated: bool = False

    def opposite(self) -> Comparison:
        """The comparison that is true where this one is false."""
        if self.kind in _OPPOSITE:
            return replace(self, kind=_OPPOSITE[self.kind])
        return replace(self, is_negated=not self.is_negated)

    def over(self, outputs: tuple[Expression, ...]) -> list[Expression]:
        """What is compared, as conditions that must all hold."""
        pairs = zip(self.values, outputs, strict=True)
        found = [comparison_of(self.kind, value, output) for value, output in pairs]
        return (
            [Expression(exp.Not(this=exp.Paren(this=part.node))) for part in found]
            if self.is_negated
            else found
        )

    def nullable(self, operator: Operator) -> list[bool]:
        """For each value whether comparing it can give null."""
        if self.kind not in COMPARISONS:
            return [True] * len(self.values)
        return [
            can_be_null(operator, value) or can_be_null(self.block.operator, output)
            for value, (_, output) in zip(self.values, self.block.outputs, strict=True)
        ]


def is_any(operator: Operator, comparison: Comparison, context: Context) -> tuple[Operator, Expression]:
    """A mark that is true where ANY is true, and false where it is false or null."""
    parts = comparison.over(outputs_of(comparison.block))
    return attach_mark(operator, comparison.block, parts, context)


def value_of_any(operator: Operator, comparison: Comparison, context: Context) -> tuple[Operator, Expression]:
    """ANY with its three values."""
    unknown: Expression | None = None
    if any(comparison.nullable(operator)):
        operator, unknown = _unknown(operator, comparison, context)
    operator, mark = is_any(operator, comparison, context)
    if unknown is None:
        return operator, mark
    null = exp.Cast(this=exp.Null(), to=exp.DataType.build("boolean"))
    branches = [exp.If(this=mark.node, true=exp.true()), exp.If(this=unknown.node, true=null)]
    return operator, Expression(exp.Case(ifs=branches, default=exp.false()))


def is_not_any(operator: Operator, comparison: Comparison, context: Context) -> tuple[Operator, Expression]:
    """A condition that is true where ANY is false, and false where it is true or null."""
    found: list[exp.Expr] = []
    if any(comparison.nullable(operator)):
        operator, unknown = _unknown(operator, comparison, context)
        found.append(unknown.node)
    if not found or _is_single_equality(comparison):
        operator, mark = is_any(operator, comparison, context)
        found.append(mark.node)
    refuted = [exp.Not(this=part if isinstance(part, exp.Column) else exp.Paren(this=part)) for part in found]
    return operator, Expression(exp.and_(*refuted, copy=False))


def _is_single_equality(comparison: Comparison) -> bool:
    return comparison.kind is exp.EQ and len(comparison.values) == 1 and not comparison.is_negated


def _unknown(operator: Operator, comparison: Comparison, context: Context) -> tuple[Operator, Expression]:
    """A condition that holds where ANY is null, and perhaps also where it is true."""
    if _is_single_equality(comparison):
        return _unknown_membership(operator, comparison, context)
    block = copy_block(comparison.block, context)
    parts = zip(comparison.over(outputs_of(block)), comparison.nullable(operator), strict=True)
    loose = [
        _is(part, exp.false(), negate=True) if can_be_unknown else part for part, can_be_unknown in parts
    ]
    return attach_mark(operator, block, loose, context)


def _unknown_membership(
    operator: Operator, comparison: Comparison, context: Context
) -> tuple[Operator, Expression]:
    """`x IN (…)` without a match is null if one of the rows is null, or if x is and there are rows."""
    (value,) = comparison.values
    (output,) = outputs_of(comparison.block)
    found: list[exp.Expr] = []
    if can_be_null(comparison.block.operator, output):
        block = copy_block(comparison.block, context)
        operator, has_null = attach_mark(operator, block, [_is(outputs_of(block)[0], exp.Null())], context)
        found.append(has_null.node)
    if can_be_null(operator, value):
        operator, has_rows = attach_mark(operator, copy_block(comparison.block, context), [], context)
        found.append(exp.Paren(this=exp.and_(_is(value, exp.Null()).node, has_rows.node)))
    return operator, Expression(exp.or_(*found))


def outputs_of(block: Block) -> tuple[Expression, ...]:
    """The outputs without their names."""
    return tuple(expression for _, expression in block.outputs)


def comparison_of(kind: type[exp.Expr], value: Expression, output: Expression) -> Expression:
    """A comparison of two values."""
    sides = [e.node if e.column is not None else exp.Paren(this=e.node) for e in (value, output)]
    return Expression(kind(this=sides[0].copy(), expression=sides[1].copy()))


def _is(value: Expression, what: exp.Expr, *, negate: bool = False) -> Expression:
    node = exp.Is(this=exp.Paren(this=value.node.copy()), expression=what)
    if negate:
        node.set("negate", True)
    return Expression(node)
