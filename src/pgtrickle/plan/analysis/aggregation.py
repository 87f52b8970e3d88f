"""GROUP BY, HAVING and aggregate calls: the rows of a block become groups."""

from __future__ import annotations

from sqlglot import exp

from pgtrickle.model.errors import UnsupportedQuery
from pgtrickle.model.names import quoted
from pgtrickle.model.source import PgType
from pgtrickle.plan.analysis.context import Context, refuse
from pgtrickle.plan.analysis.result import result_column
from pgtrickle.plan.analysis.scope import Scope
from pgtrickle.plan.analysis.settle import Settler
from pgtrickle.plan.carriers import MAX_SCALE, carrier_of, decimal, is_integral
from pgtrickle.plan.dialect import written
from pgtrickle.plan.expressions import Expression, column
from pgtrickle.plan.lowering.postgres import postgres_sql
from pgtrickle.plan.numerics import Numeric, numeric_of
from pgtrickle.plan.operators import Aggregate, Call, Column, Filter, GroupKey, Operator

Outputs = tuple[tuple[str, Expression], ...]


def has_aggregates(node: exp.Select, context: Context) -> bool:
    """Whether the select list or HAVING calls an aggregate."""
    places = [*node.expressions, *([node.args["having"]] if node.args.get("having") else [])]
    return any(_is_call(part, context) for place in places for part in place.walk())


def aggregated(
    node: exp.Select, child: Operator, outputs: Outputs, scope: Scope, context: Context
) -> tuple[Operator, Outputs]:
    """The groups as an operator, and the outputs as expressions over it."""
    group = node.args.get("group")
    if group and _has_grouping_sets(group):
        raise refuse("GROUPING SETS, CUBE or ROLLUP")
    keys = [scope.resolve(item) for item in group.expressions] if group else []
    having = scope.resolve(node.args["having"].this) if node.args.get("having") else None
    grouping = _Grouping(child, context)
    for key in keys:
        grouping.add_key(key)
    rewritten = tuple((name, grouping.rewritten(expression)) for name, expression in outputs)
    condition = grouping.rewritten(having) if having else None
    operator: Operator = grouping.operator()
    if condition is not None:
        operator = Filter(operator, condition)
    return operator, rewritten


def _has_grouping_sets(group: exp.Group) -> bool:
    if any(group.args.get(kind) for kind in ("grouping_sets", "cube", "rollup")):
        return True
    if next(group.find_all(exp.GroupingSets, exp.Cube, exp.Rollup), None):
        return True
    return any(call.name.lower() in {"rollup", "cube"} for call in group.find_all(exp.Anonymous))


def _is_call(node: exp.Expr, context: Context) -> bool:
    if isinstance(node, (exp.AggFunc, exp.WithinGroup, exp.Filter)):
        return True
    return isinstance(node, exp.Anonymous) and node.name.lower() in context.definition.aggregates


class _Grouping:
    """Collects the keys and calls of one block."""

    def __init__(self, child: Operator, context: Context) -> None:
        self._context = context
        self._raw = child
        self._settler = Settler(context, child)
        self._keys: dict[str, GroupKey] = {}
        self._calls: dict[str, Call] = {}

    def operator(self) -> Aggregate:
        """The aggregate with all that was collected."""
        return Aggregate(self._settler.operator, tuple(self._keys.values()), tuple(self._calls.values()))

    def add_key(self, key: Expression) -> Column:
        """Group by this expression too."""
        text = _text(key.node)
        if text not in self._keys:
            settled = self._settler.in_spark(key)
            result = result_column(self._context, str(key), settled, self._settler.operator)
            self._keys[text] = GroupKey(result, settled)
        return self._keys[text].column

    def rewritten(self, expression: Expression) -> Expression:
        """An expression of the block over the groups: keys and calls become columns."""

        def replace_part(node: exp.Expr) -> exp.Expr:
            if key := self._keys.get(_text(node)):
                return column(key.column.name).node
            if _is_call(node, self._context):
                return self._call(node)
            if isinstance(node, exp.Column):
                # PostgreSQL accepted it, so the keys determine it: one more key changes no group
                return column(self.add_key(Expression(node)).name).node
            for part in list(node.iter_expressions()):
                part.replace(replace_part(part))
            return node

        return Expression(replace_part(expression.node.copy()))

    def _call(self, node: exp.Expr) -> exp.Expr:
        call, condition = node, None
        if isinstance(node, exp.Filter):
            call, condition = node.this, node.expression.this
        argument = call.this if isinstance(call, exp.Func) and call.args.get("this") is not None else None
        if isinstance(call, exp.Avg) and self._is_exact(argument, needs_uniform=True):
            total = self._added("sum", exp.Sum(this=argument), argument, condition)
            count = self._added("count", exp.Count(this=argument), argument, condition)
            return _quotient(total, count)
        function = self._exact_function(call, argument)
        return column(self._added(function, call, argument, condition).name).node

    def _exact_function(self, call: exp.Expr, argument: exp.Expr | None) -> str | None:
        """Which of the exact aggregates the call is, if Spark can compute it."""
        if isinstance(argument, (exp.Distinct, exp.Order)) or (
            not isinstance(call, exp.Count) and call.args.get("expressions")
        ):
            return None
        if isinstance(call, exp.Count):
            return "count"
        if isinstance(call, exp.Sum):
            return "sum" if self._is_exact(argument, needs_uniform=False) else None
        if isinstance(call, (exp.LogicalAnd, exp.LogicalOr)):
            return "bool_and" if isinstance(call, exp.LogicalAnd) else "bool_or"
        if isinstance(call, (exp.Min, exp.Max)) and self._is_ordered(argument):
            return "min" if isinstance(call, exp.Min) else "max"
        return None

    def _added(
        self, function: str | None, call: exp.Expr, argument: exp.Expr | None, condition: exp.Expr | None
    ) -> Column:
        whole = (
            exp.Filter(this=call.copy(), expression=exp.Where(this=condition.copy())) if condition else call
        )
        text = written(whole)
        if text not in self._calls:
            self._calls[text] = self._made(function, Expression(whole.copy()), argument, condition)
        return self._calls[text].column

    def _made(
        self, function: str | None, whole: Expression, argument: exp.Expr | None, condition: exp.Expr | None
    ) -> Call:
        pg_type = self._type(whole)
        name = self._context.unique(str(whole)[:40])
        if function is None:
            return Call(Column(name, pg_type, carrier_of(pg_type)), whole)
        value = _folded(function, argument, condition)
        if value is None:
            return Call(Column(name, pg_type, carrier_of(pg_type)), whole, "count", None)
        try:
            settled = self._settler.computed(value)
            operand = result_column(self._context, name, settled, self._settler.operator)
        except UnsupportedQuery:
            return Call(Column(name, pg_type, carrier_of(pg_type)), whole)
        return Call(self._exact_column(name, pg_type, function, operand), whole, function, settled)

    def _exact_column(self, name: str, pg_type: PgType, function: str, operand: Column) -> Column:
        if function in {"min", "max"}:
            return Column(name, pg_type, operand.carrier)
        if function == "sum":
            scale = 0 if is_integral(operand.type) else int(operand.carrier.spark.rstrip(")").split(",")[1])
            return Column(name, pg_type, decimal(pg_type, scale))
        return Column(name, pg_type, carrier_of(pg_type))

    def _type(self, expression: Expression) -> PgType:
        rows = f"({postgres_sql(self._raw)}) as t"
        return self._context.typer(rows, [expression.over(lambda name: "t." + quoted(name))])[0]

    def _is_exact(self, argument: exp.Expr | None, *, needs_uniform: bool) -> bool:
        if argument is None or isinstance(argument, (exp.Distinct, exp.Order)):
            return False
        pg_type = self._type(Expression(argument))
        if is_integral(pg_type):
            return True
        name = Expression(argument).column
        if name and self._raw.column(name).carrier.spark.startswith("decimal"):
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


def _text(node: exp.Expr) -> str:
    return written(node.unnest())


def _folded(function: str, argument: exp.Expr | None, condition: exp.Expr | None) -> Expression | None:
    """The value to aggregate with its FILTER taken in; None to count every row."""
    if function == "count":
        parts: list[exp.Expr] = []
        if argument is not None and not isinstance(argument, exp.Star):
            parts.append(exp.Not(this=exp.Is(this=exp.Paren(this=argument.copy()), expression=exp.Null())))
        if condition is not None:
            parts.append(exp.Is(this=exp.Paren(this=condition.copy()), expression=exp.true()))
        return Expression(exp.and_(*parts, copy=False)) if parts else None
    assert argument is not None
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
