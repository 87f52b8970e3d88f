"""Aggregate calls: which of them Spark computes exactly, and from what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp

from pgtrickle.model.carrier import DecimalType
from pgtrickle.model.errors import UnsupportedQuery
from pgtrickle.model.source import PgType
from pgtrickle.plan.aggregates import EXACT, Operand, aggregate_of, exact_column, fits
from pgtrickle.plan.analysis.columns import is_exact, over_rows, result_column, type_over
from pgtrickle.plan.analysis.context import Context
from pgtrickle.plan.analysis.order_in_calls import depends_on_order, in_order
from pgtrickle.plan.analysis.row_order import NO_ORDER, RowOrder, items_over
from pgtrickle.plan.analysis.scan_pushdown import ScanPushdown
from pgtrickle.plan.carriers import MAX_SCALE, carrier_of, is_integral
from pgtrickle.plan.expressions import Expression, column
from pgtrickle.plan.expressions.dialect import to_sql
from pgtrickle.plan.expressions.numerics import Numeric, numeric_of
from pgtrickle.plan.operators import Call, Column, Operator
from pgtrickle.plan.refusals import refuse, refuse_correlation


def require_known_over_no_rows(call: Call) -> None:
    """Refuse an aggregate of which we do not know what it gives over no rows."""
    if aggregate_of(call.expression.node) is None:
        raise refuse(f"{call.expression} in a correlated subquery")


class Calls:
    """The aggregate calls of one block, whose rows arrive in `order`."""

    def __init__(self, child: Operator, order: RowOrder, pushdown: ScanPushdown, context: Context) -> None:
        self._order = order
        self._items = items_over(order, child.names)
        self._context = context
        self._raw = child
        self._pushdown = pushdown
        self._calls: dict[str, Call] = {}

    @property
    def all(self) -> tuple[Call, ...]:
        """The calls so far."""
        return tuple(self._calls.values())

    def prefetch_types(self, calls: Iterable[exp.Expr]) -> None:
        """Ask at once for the types of calls, and of what they aggregate."""
        found = [self._order_rows(call) for call in calls if Expression(call).columns <= self._raw.names]
        arguments = [Expression(value) for node in found if (value := _value(node)) is not None]
        wholes = [Expression(whole) for node in found for whole in _computed_calls(node)]
        asked = [one for one in (*wholes, *arguments) if one.column is None]
        if self._raw.columns:
            known = [over_rows(one) for one in asked if one.columns <= self._raw.names]
            self._context.prefetch_types(self._context.rows_of(self._raw), known)
        self._pushdown.prefetch_types(arguments)

    def rewrite(self, node: exp.Expr) -> exp.Expr:
        """A call as an expression over the groups."""
        self._require_own(node)
        call, condition = self._order_rows(node), None
        self._require_own(call)
        if isinstance(call, exp.Filter):
            call, condition = call.this, call.expression.this
        argument = _argument(call)
        if isinstance(call, exp.Avg) and self._is_exact(argument, needs_uniform=True):
            total = self._add_call("sum", exp.Sum(this=argument), argument, condition)
            count = self._add_call("count", exp.Count(this=argument), argument, condition)
            return _quotient(total, count)
        function = self._exact_function(call, argument)
        return column(self._add_call(function, call, argument, condition).name).node

    def _require_own(self, node: exp.Expr) -> None:
        if not Expression(node).columns <= self._raw.names:
            raise refuse_correlation(f"{Expression(node)}, which reads a surrounding query,")

    def _order_rows(self, node: exp.Expr) -> exp.Expr:
        """The call, with or without FILTER, with the order of the rows spelled out if it matters."""
        if self._order == NO_ORDER:
            return node
        if isinstance(node, exp.Filter):
            return exp.Filter(this=self._order_rows(node.this).copy(), expression=node.expression.copy())
        if not depends_on_order(node, lambda value: self._type(Expression(value))):
            return node
        return in_order(node, self._order, self._items)

    def _exact_function(self, call: exp.Expr, argument: exp.Expr | None) -> str | None:
        """Which of the exact aggregates the call is, if Spark can compute it."""
        if isinstance(call, exp.Count) and isinstance(argument, exp.Distinct):
            return "count_distinct" if len(argument.expressions) == 1 else None
        found = aggregate_of(call)
        if found is None or found.exact is None:
            return None
        if found.exact != "count" and (argument is None or isinstance(argument, (exp.Distinct, exp.Order))):
            return None
        match EXACT[found.exact].operand:
            case Operand.NUMBER:
                is_exact = self._is_exact(argument, needs_uniform=False)
            case Operand.ORDERED:
                is_exact = self._is_ordered(argument)
            case _:
                is_exact = True
        return found.exact if is_exact else None

    def _add_call(
        self, function: str | None, call: exp.Expr, argument: exp.Expr | None, condition: exp.Expr | None
    ) -> Column:
        whole = (
            exp.Filter(this=call.copy(), expression=exp.Where(this=condition.copy())) if condition else call
        )
        text = to_sql(whole)
        if text not in self._calls:
            self._calls[text] = self._make_call(function, Expression(whole.copy()), argument, condition)
        return self._calls[text].column

    def _make_call(
        self, function: str | None, whole: Expression, argument: exp.Expr | None, condition: exp.Expr | None
    ) -> Call:
        pg_type = self._type(whole)
        name = self._context.unique(str(whole)[:40])
        if function is None:
            return Call(Column(name, pg_type, carrier_of(pg_type)), whole)
        if function == "count" and argument is not None and self._is_row(argument):
            # a row of nulls is null to IS NULL, and not to count
            argument = exp.Nullif(
                this=exp.Anonymous(this="num_nonnulls", expressions=[argument.copy()]),
                expression=exp.Literal.number(0),
            )
        if function == "count_distinct" and self._is_record(argument):
            return Call(Column(name, pg_type, carrier_of(pg_type)), whole)
        value = _fold_filter(function, argument, condition)
        if value is None:
            return Call(Column(name, pg_type, carrier_of(pg_type)), whole, "count", None)
        is_counted = function == "count_distinct"
        pushed = self._pushdown.for_spark(value) if is_counted else self._pushdown.push_numbers(value)
        operand = result_column(self._context, name, pushed, self._pushdown.operator)
        if not is_exact(pushed, self._pushdown.operator) or not fits(function, operand):
            return Call(Column(name, pg_type, carrier_of(pg_type)), whole)
        return Call(exact_column(name, pg_type, function, operand), whole, function, pushed)

    def _type(self, expression: Expression) -> PgType:
        return type_over(self._context, expression, self._raw)

    def _is_row(self, argument: exp.Expr) -> bool:
        """Whether a counted value is a row."""
        if isinstance(argument, (exp.Star, exp.Distinct)):
            return False
        return self._is_record(argument) or self._type(Expression(argument)).kind == "c"

    def _is_record(self, argument: exp.Expr | None) -> bool:
        """Whether a value is a row without a type of its own, which cannot be a column."""
        node = argument.expressions[0] if isinstance(argument, exp.Distinct) else argument
        assert node is not None
        try:
            self._type(Expression(node))
        except UnsupportedQuery:
            return True
        return False

    def _is_exact(self, argument: exp.Expr | None, *, needs_uniform: bool) -> bool:
        if argument is None or isinstance(argument, (exp.Distinct, exp.Order)):
            return False
        pg_type = self._type(Expression(argument))
        if is_integral(pg_type):
            return True
        name = Expression(argument).column
        if name and isinstance(self._raw.column(name).carrier.form, DecimalType):
            # a sum below: its scale is known, though not that every value has all of it
            return not needs_uniform
        number: Numeric | None = None
        if pg_type.base == "numeric":
            number = numeric_of(argument, lambda name: self._raw.column(name).type)
        if number is None or number.scale > MAX_SCALE:
            return False
        return number.is_uniform or not needs_uniform

    def _is_ordered(self, argument: exp.Expr | None) -> bool:
        if argument is None or isinstance(argument, (exp.Distinct, exp.Order)):
            return False
        pg_type = self._type(Expression(argument))
        if pg_type.base == "numeric":
            return self._is_exact(argument, needs_uniform=False)
        return carrier_of(pg_type).ordering and pg_type.base not in {"real", "double precision"}


def _argument(call: exp.Expr) -> exp.Expr | None:
    """What a call aggregates if that is one value."""
    if isinstance(call, exp.Anonymous):
        return call.expressions[0] if call.name.lower() == "every" else None
    return call.args.get("this") if isinstance(call, exp.AggFunc) else None


def _value(node: exp.Expr) -> exp.Expr | None:
    """What a call, with or without FILTER, aggregates if that is one plain value."""
    value = _argument(node.this if isinstance(node, exp.Filter) else node)
    return None if isinstance(value, (exp.Distinct, exp.Order, exp.Star)) else value


def _computed_calls(node: exp.Expr) -> Iterator[exp.Expr]:
    """The calls that are computed for a call: of an average, the sum and the count."""
    call, value = node.this if isinstance(node, exp.Filter) else node, _value(node)
    if not isinstance(call, exp.Avg) or value is None:
        yield node
        return
    for kind in (exp.Sum, exp.Count):
        part = kind(this=value.copy())
        yield exp.Filter(this=part, expression=node.expression.copy()) if node is not call else part


def _fold_filter(function: str, argument: exp.Expr | None, condition: exp.Expr | None) -> Expression | None:
    """The value to aggregate with its FILTER taken in; None to count every row."""
    if function == "count":
        parts: list[exp.Expr] = []
        if argument is not None and not isinstance(argument, exp.Star):
            parts.append(exp.Not(this=exp.Is(this=exp.Paren(this=argument.copy()), expression=exp.Null())))
        if condition is not None:
            parts.append(exp.Is(this=exp.Paren(this=condition.copy()), expression=exp.true()))
        return Expression(exp.and_(*parts, copy=False)) if parts else None
    assert argument is not None
    if isinstance(argument, exp.Distinct):
        (argument,) = argument.expressions
    if condition is None:
        return Expression(argument.copy())
    branch = exp.If(this=condition.copy(), true=argument.copy())
    return Expression(exp.Case(ifs=[branch]))


def _quotient(total: Column, count: Column) -> exp.Expr:
    """An average as PostgreSQL computes it: the sum, as numeric, divided by the count."""
    zero = exp.Nullif(this=column(count.name).node, expression=exp.Literal.number(0))
    numeric = exp.DataType.build("numeric", dialect="postgres")
    return exp.Paren(
        this=exp.Div(
            this=exp.Cast(this=column(total.name).node, to=numeric.copy()),
            expression=exp.Cast(this=zero, to=numeric),
            typed=True,
            safe=False,
        )
    )
