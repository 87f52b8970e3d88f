"""Window functions: one operator for each set of columns that rows are partitioned by."""

from __future__ import annotations

from sqlglot import exp

from pgtrickle.plan.analysis.columns import as_column, type_over
from pgtrickle.plan.analysis.context import Context
from pgtrickle.plan.analysis.correlation import correlation_keys
from pgtrickle.plan.analysis.function_kinds import bare_call
from pgtrickle.plan.analysis.order_in_calls import window_in_order
from pgtrickle.plan.analysis.row_order import RowOrder, items_over
from pgtrickle.plan.carriers import carrier_of
from pgtrickle.plan.expressions import Expression, column
from pgtrickle.plan.expressions.dialect import to_sql
from pgtrickle.plan.operators import Column, Operator, Window, WindowCall
from pgtrickle.plan.properties import row_key
from pgtrickle.plan.refusals import refuse


def inline_windows(node: exp.Select) -> exp.Select:
    """The query with every OVER clause spelled out; WINDOW gave names to some."""
    definitions = {w.this.name: w for w in node.args.get("windows") or []}
    if not definitions:
        return node
    node = node.copy()
    node.set("windows", None)
    for window in list(node.find_all(exp.Window)):
        if window.args.get("alias") and window.find_ancestor(exp.Select) is node:
            _spell_out(window, definitions)
    return node


def _spell_out(window: exp.Window, definitions: dict[str, exp.Window]) -> None:
    named = definitions.get(window.alias)
    if named is None:
        raise refuse(f"the window {window.alias}")
    if named.args.get("alias"):
        named = named.copy()
        _spell_out(named, definitions)
    window.set("alias", None)
    for part in ("partition_by", "order", "spec"):
        own, given = window.args.get(part), named.args.get(part)
        if not own and given:
            copies = [item.copy() for item in given] if isinstance(given, list) else given.copy()
            window.set(part, copies)


class Windows:
    """The window calls of one block, whose rows are those of an operator and arrive in `order`."""

    def __init__(
        self, operator: Operator, correlated: tuple[Expression, ...], order: RowOrder, context: Context
    ) -> None:
        self._order = order
        self._context = context
        found = correlation_keys(operator, correlated, "a window function", context)
        self._operator = found.operator
        self._keys = found.names
        self.correlated = found.conditions
        self._calls: dict[tuple[str, ...], dict[str, WindowCall]] = {}

    def operator(self) -> Operator:
        """The rows with the values of all calls."""
        operator = self._operator
        for partition, calls in self._calls.items():
            operator = Window(operator, partition, tuple(calls.values()))
        return operator

    def rewrite(self, expression: Expression) -> Expression:
        """The expression with its window calls as columns."""
        return Expression(self._rewrite_node(expression.node.copy()))

    def _rewrite_node(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Window):
            return column(self._call(node)).node
        for part in list(node.iter_expressions()):
            part.replace(self._rewrite_node(part))
        return node

    def _call(self, node: exp.Window) -> str:
        items = items_over(self._order, self._operator.names)
        window_in_order(node, self._order, items, row_key(self._operator))
        names = [self._column(part) for part in node.args.get("partition_by") or []]
        partition = tuple(sorted({*names, *self._keys}))
        node.set("partition_by", [column(name).node for name in dict.fromkeys([*names, *self._keys])])
        for item in node.args["order"].expressions if node.args.get("order") else []:
            item.set("this", column(self._column(item.this)).node)
        self._push_arguments(node.this)
        calls = self._calls.setdefault(partition, {})
        text = to_sql(node)
        if text not in calls:
            whole = Expression(node.copy())
            pg_type = type_over(self._context, whole, self._operator)
            name = self._context.unique(str(whole)[:40])
            calls[text] = WindowCall(Column(name, pg_type, carrier_of(pg_type)), whole)
        return calls[text].column.name

    def _push_arguments(self, call: exp.Expr) -> None:
        if isinstance(call, exp.Filter):
            condition = call.expression
            condition.set("this", column(self._column(condition.this)).node)
            call = call.this
        for part in list(bare_call(call).iter_expressions()):
            if Expression(part).columns and not isinstance(part, (exp.Star, exp.Distinct, exp.Order)):
                part.replace(column(self._column(part)).node)

    def _column(self, node: exp.Expr) -> str:
        self._operator, name = as_column(self._operator, Expression(node.copy()), self._context)
        return name
