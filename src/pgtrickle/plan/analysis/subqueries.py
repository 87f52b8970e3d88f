"""Subqueries inside expressions: each is attached to the rows that ask it, and becomes a column."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass

from sqlglot import exp

from pgtrickle.plan.analysis.aggregate_levels import check_levels
from pgtrickle.plan.analysis.block import Block, Surroundings
from pgtrickle.plan.analysis.condition_pushdown import restrict
from pgtrickle.plan.analysis.context import Context
from pgtrickle.plan.analysis.domains import over_domain
from pgtrickle.plan.analysis.marks import (
    Comparison,
    attach_mark,
    comparison_of,
    is_any,
    is_not_any,
    outputs_of,
    value_of_any,
)
from pgtrickle.plan.analysis.scalars import attach_row, attach_total, may_be_several
from pgtrickle.plan.analysis.scope import Scope, has_subquery
from pgtrickle.plan.analysis.subquery_forms import as_aggregate, for_existence, for_membership
from pgtrickle.plan.expressions import Expression, all_of, conjuncts
from pgtrickle.plan.expressions.dialect import is_array_of_query, to_sql
from pgtrickle.plan.expressions.syntax import NamedOperator
from pgtrickle.plan.operators import Operator
from pgtrickle.plan.refusals import Correlated, refuse

_GUARDS = (exp.Case, exp.If, exp.Coalesce, exp.And, exp.Or)
"""Where PostgreSQL does not evaluate what it need not."""


@dataclass(frozen=True, slots=True)
class _Question:
    """`values kind ANY (query)`, or ALL."""

    values: tuple[exp.Expr, ...]
    kind: type[exp.Expr]
    query: exp.Expr
    is_all: bool


class Attachments:
    """An operator to which the subqueries of the expressions over it are attached.

    `plain` resolves expressions without subqueries, and those whose text is `known` to it. It `may_fail`
    if a subquery that is used as a value can have several rows.
    """

    def __init__(
        self,
        operator: Operator,
        scope: Scope,
        surroundings: Surroundings,
        plain: Callable[[exp.Expr], Expression] | None = None,
        known: Container[str] = (),
    ) -> None:
        self.operator = operator
        self._known = known
        self._plain = plain or scope.resolve
        self.correlated: list[Expression] = []
        self._is_guarded = False
        self.may_fail = False
        self._scope = scope
        self._surroundings = surroundings
        self._context = surroundings.context

    def keep(self, node: exp.Expr) -> None:
        """Keep only the rows for which the condition is true."""
        for part in conjuncts(Expression(self._condition(node.copy()))):
            if part.columns <= self.operator.names:
                self.operator = restrict(self.operator, part, self._context)
            else:
                self.correlated.append(part)

    def value(self, node: exp.Expr) -> Expression:
        """The expression over the operator, which now has what the subqueries give."""
        return Expression(self._value(node.copy()))

    def _condition(self, node: exp.Expr) -> exp.Expr:
        """A condition for which null is as good as false."""
        if to_sql(node.unnest()) in self._known:
            return self._plain(node.unnest()).node
        if isinstance(node, exp.Paren):
            return exp.Paren(this=self._condition(node.this))
        if isinstance(node, (exp.And, exp.Or)):
            return type(node)(this=self._condition(node.left), expression=self._condition(node.right))
        inner = node.this.unnest() if isinstance(node, exp.Not) else node
        question = _question(inner)
        if question is None:
            return self._value(node)
        if question.is_all != isinstance(node, exp.Not):
            return self._attach_answer(question, is_not_any)
        return self._attach_answer(question, is_any)

    def _value(self, node: exp.Expr) -> exp.Expr:
        if not has_subquery(node) or to_sql(node) in self._known:
            return self._plain(node).node
        if isinstance(node, exp.Exists):
            return self._attach_query(for_existence(node.this, self._context), self._exists)
        if is_array_of_query(node):
            return self._attach_query(as_aggregate(node.expressions[0]), self._scalar)
        if isinstance(node, exp.Subquery):
            return self._attach_query(node.this, self._scalar)
        question = _question(node)
        if question is not None:
            answer = self._attach_answer(question, value_of_any)
            return exp.Paren(this=exp.Not(this=answer) if question.is_all else answer)
        if isinstance(node, (exp.EQ, exp.NEQ)) and _is_row(node.this):
            return self._compare_row(node)
        if isinstance(node, exp.Query):
            if node.parent is not None and not isinstance(node.parent, exp.Paren):
                raise refuse("a subquery in this place")
            return self._attach_query(node, self._scalar)
        before = self._is_guarded
        self._is_guarded = before or isinstance(node, _GUARDS)
        for part in list(node.iter_expressions()):
            part.replace(self._value(part))
        self._is_guarded = before
        return node

    def _attach_query(self, query: exp.Expr, attach: Callable[[Block], exp.Expr]) -> exp.Expr:
        """Attach the query as it is, or else for all values of its outer columns that there are."""
        before = self.operator
        self._context.count_subquery()
        check_levels(query, self._context)
        taken = set(self._context.taken)
        try:
            inner = self._surroundings.inside(self._scope)
            return _enclose(attach(inner.analyse(query, inner)))
        except Correlated as refusal:
            self.operator, self._context.taken = before, taken
            block = over_domain(query, before, self._scope, self._surroundings, refusal)
            return _enclose(attach(block))

    def _exists(self, block: Block) -> exp.Expr:
        if block.is_total:
            found = attach_total(self.operator, block, self._context)
            self.operator = found.operator
            return found.is_there.node if found.is_there else exp.true()
        self.operator, mark = attach_mark(self.operator, block, [], self._context)
        return mark.node

    def _scalar(self, block: Block) -> exp.Expr:
        if may_be_several(block):
            self.may_fail = True
            if self._is_guarded:
                raise refuse(
                    "a subquery in CASE, COALESCE, AND or OR that is an error if it has several rows"
                )
        found = attach_row(self.operator, block, self._context)
        self.operator = found.operator
        return found.value(0).node.copy()

    def _row(self, values: tuple[exp.Expr, ...], block: Block) -> exp.Expr:
        found = attach_row(self.operator, block, self._context)
        self.operator = found.operator
        given = [found.value(number) for number in range(len(values))]
        pairs = zip(values, given, strict=True)
        return exp.and_(*(comparison_of(exp.EQ, Expression(value), own).node for value, own in pairs))

    def _compare_row(self, node: exp.EQ | exp.NEQ) -> exp.Expr:
        if not isinstance(node.expression, exp.Subquery):
            raise refuse("a comparison of rows, one of them with a subquery in it,")
        values = tuple(self._value(part) for part in node.this.unnest().expressions)
        equal = self._attach_query(node.expression.this, lambda block: self._row(values, block))
        return exp.Not(this=equal) if isinstance(node, exp.NEQ) else equal

    def _attach_answer(
        self,
        question: _Question,
        answer: Callable[[Operator, Comparison, Context], tuple[Operator, Expression]],
    ) -> exp.Expr:
        kind = exp.EQ if question.is_all and question.kind is exp.NEQ else question.kind
        if len(question.values) > 1 and kind is not exp.EQ:
            raise refuse("a comparison of rows with a subquery, other than equality,")
        values = tuple(Expression(self._value(value.copy())) for value in question.values)

        def attach(block: Block) -> exp.Expr:
            comparison = Comparison(values, question.kind, block)
            if question.is_all:
                comparison = comparison.opposite()
            if block.is_total:
                return self._total(comparison, is_refuted=answer is is_not_any)
            self.operator, found = answer(self.operator, comparison, self._context)
            return found.node

        return self._attach_query(for_membership(question.query, self._context), attach)

    def _total(self, comparison: Comparison, *, is_refuted: bool) -> exp.Expr:
        """ANY over the one row that there always is, if its condition holds."""
        found = attach_total(self.operator, comparison.block, self._context)
        self.operator = found.operator
        equal = all_of(tuple(comparison.over(outputs_of(comparison.block))))
        assert equal is not None
        node = equal.node
        if found.is_there is not None:
            branch = exp.If(this=found.is_there.node.copy(), true=node)
            node = exp.Case(ifs=[branch], default=exp.false())
        return exp.Not(this=exp.Paren(this=node)) if is_refuted else node


def _question(node: exp.Expr) -> _Question | None:
    if isinstance(node, exp.In) and node.args.get("query"):
        return _Question(_values(node.this), exp.EQ, node.args["query"], is_all=False)
    operand = node.expression if isinstance(node, exp.Binary) else None
    if isinstance(operand, (exp.Any, exp.All)) and isinstance(operand.this, exp.Query):
        if isinstance(node, (exp.Operator, NamedOperator)):
            raise refuse("a comparison with a subquery by an operator outside of pg_catalog")
        is_all = isinstance(operand, exp.All)
        return _Question(_values(node.this), type(node), operand.this, is_all)
    return None


def _values(node: exp.Expr) -> tuple[exp.Expr, ...]:
    return tuple(node.unnest().expressions) if _is_row(node) else (node,)


def _is_row(node: exp.Expr) -> bool:
    bare = node.unnest()
    return isinstance(bare, exp.Tuple) or (isinstance(bare, exp.Anonymous) and bare.name.lower() == "row")


def _enclose(node: exp.Expr) -> exp.Expr:
    return node if isinstance(node, (exp.Column, exp.Paren)) else exp.Paren(this=node)
