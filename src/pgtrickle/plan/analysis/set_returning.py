"""Functions in the select list that return sets: each row becomes one for each value.

PostgreSQL puts rows in order first and expands them then, so that the rows made of one row stay together
and in the order of the function. If ORDER BY reads the function, it expands first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from pgtrickle.model.errors import UnsupportedQuery
from pgtrickle.plan.analysis.block import Block
from pgtrickle.plan.analysis.columns import type_over
from pgtrickle.plan.analysis.context import Context
from pgtrickle.plan.analysis.function_kinds import bare_call, is_set_function, set_functions
from pgtrickle.plan.analysis.row_order import NO_ORDER, OrderItem, RowOrder
from pgtrickle.plan.analysis.scope import Scope
from pgtrickle.plan.analysis.table_functions import rows_from, table_function
from pgtrickle.plan.expressions import Expression, column
from pgtrickle.plan.expressions.bounded_calls import is_bounded
from pgtrickle.plan.expressions.dialect import to_sql
from pgtrickle.plan.operators import Operator
from pgtrickle.plan.properties import row_key
from pgtrickle.plan.refusals import refuse, refuse_correlation

EXPANDED = "values of a function in GROUP BY"
"""The relation whose column is what the function returns."""


@dataclass(frozen=True, slots=True)
class Expansion:
    """What surrounds the select list: its ORDER BY and DISTINCT ON, and whom the order matters to.

    It `is_unread` if it matters to nobody, `is_free` if not to the rows of the block itself.
    """

    order: tuple[OrderItem, ...]
    on: tuple[Expression, ...]
    is_unread: bool
    is_free: bool
    is_distinct: bool


def expand(block: Block, around: Expansion, context: Context) -> tuple[Block, list[OrderItem]]:
    """The block with a row for each value of the function in its select list, and its ORDER BY."""
    calls = {Expression(c): c for _, e in block.outputs for c in set_functions(e.node, context)}
    ordering = [item.value for item in around.order] + list(around.on)
    in_order = {Expression(c) for value in ordering for c in set_functions(value.node, context)}
    if not calls and not in_order:
        return block, list(around.order)
    if not in_order <= calls.keys():
        raise refuse("a function that returns sets in ORDER BY or DISTINCT ON alone")
    if any(len(set_functions(call, context)) > 1 for call in calls.values()):
        raise refuse("a function that returns sets in the arguments of another")
    if around.on:
        raise refuse("DISTINCT ON with a function that returns sets in the select list")
    is_sorted_before = not in_order and not around.is_distinct
    arriving = block.order.then_by(list(around.order))
    is_kept = not around.is_free or (not around.is_unread and arriving != NO_ORDER)
    made = _table_function(block, tuple(calls), context, is_counted=is_sorted_before and is_kept)
    outputs = tuple((name, made.over(e)) for name, e in block.outputs)
    order = [replace(item, value=made.over(item.value)) for item in around.order]
    delivered = block.order if is_sorted_before else block.order.after_reordering()
    if made.number is not None:
        for call in calls:
            if not around.is_free and not is_bounded(call.node):
                raise refuse(f"{call}, which may never end, below LIMIT, EXISTS, IN or ANY,")
        delivered = _expansion_order(block, arriving, made.number, is_free=around.is_free)
    return replace(block, operator=made.operator, outputs=outputs, order=delivered), order


def with_expanded_keys(
    node: exp.Select, operator: Operator, scope: Scope, context: Context
) -> tuple[exp.Select, Operator]:
    """The query and its rows with a column instead of a function that returns sets in GROUP BY."""
    group = node.args.get("group")
    calls = (
        {to_sql(c): c for item in group.expressions for c in set_functions(item, context)} if group else {}
    )
    if not calls:
        return node, operator
    if len(calls) > 1:
        raise refuse("several functions that return sets in GROUP BY")
    ((text, call),) = calls.items()
    function = table_function(operator, scope.resolve(call), ["value"], context)
    scope.relations = {**scope.relations, EXPANDED: {"value": column(function.made[0].name)}}

    def replace_call(part: exp.Expr) -> exp.Expr:
        is_call = is_set_function(part, context) and to_sql(part) == text
        return exp.column("value", table=EXPANDED, quoted=True) if is_call else part

    expanded_node = node.copy().transform(replace_call)
    assert isinstance(expanded_node, exp.Select)
    return expanded_node, function


@dataclass(frozen=True, slots=True)
class _Made:
    """The expanded rows, what stands there for each call or its fields, and the number of each row."""

    operator: Operator
    wholes: Mapping[Expression, Expression]
    fields: Mapping[tuple[Expression, str], Expression]
    number: Expression | None

    def over(self, expression: Expression) -> Expression:
        """The expression over the expanded rows."""
        return Expression(expression.node.copy().transform(self._replace_node))

    def _replace_node(self, node: exp.Expr) -> exp.Expr:
        for (call, name), value in self.fields.items():
            if _field(node, call) == name:
                return value.node.copy()
        whole = self.wholes.get(Expression(node)) if isinstance(node, (exp.Func, exp.Dot)) else None
        return whole.node.copy() if whole is not None else node


def _field(node: exp.Expr, call: Expression) -> str | None:
    """The name of the field if the node takes one of the call's rows."""
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        return node.expression.name if Expression(node.this.unnest()) == call else None
    return None


def _table_function(
    block: Block, calls: tuple[Expression, ...], context: Context, *, is_counted: bool
) -> _Made:
    if len(calls) == 1:
        return _single(block, calls[0], context, is_counted=is_counted)
    child = block.operator
    for call in calls:
        if not call.columns <= child.names:
            raise refuse_correlation(f"{call}, which reads a surrounding query,")
        if _has_fields(call, child, context):
            raise refuse("several functions that return sets in one select list, one of them of rows,")
    # they run side by side, and the ones that end first are followed by nulls
    together = Expression(rows_from([call.node for call in calls]))
    names = [f"value {number}" for number in range(len(calls))] + (["number"] if is_counted else [])
    function = table_function(child, together, names, context, has_ordinality=is_counted)
    made = [column(c.name) for c in function.made]
    wholes = dict(zip(calls, made, strict=False))
    return _Made(function, wholes, {}, made[-1] if is_counted else None)


def _single(block: Block, call: Expression, context: Context, *, is_counted: bool) -> _Made:
    fields: dict[str, None] = {}
    is_whole = False
    for _, output in block.outputs:
        for node in output.node.walk():
            if (field := _field(node, call)) is not None:
                fields[field] = None
            elif Expression(node) == call and not _is_taken_apart(node):
                is_whole = True
    child = block.operator
    if not call.columns <= child.names:
        raise refuse_correlation(f"{call}, which reads a surrounding query,")
    if not fields and not _has_fields(call, child, context):
        names = ["value", "number"] if is_counted else ["value"]
        function = table_function(child, call, names, context, has_ordinality=is_counted)
        made = [column(c.name) for c in function.made]
        return _Made(function, {call: made[0]}, {}, made[1] if is_counted else None)
    if is_whole and is_counted:
        raise refuse("rows of a function that returns sets under LIMIT or ORDER BY")
    names = [*fields, *(["value"] if is_whole else []), *(["number"] if is_counted else [])]
    function = table_function(child, _take_apart(call, list(fields), is_whole, is_counted), names, context)
    made = [column(c.name) for c in function.made]
    shown = {(call, name): value for name, value in zip(fields, made, strict=False)}
    wholes = {call: made[len(fields)]} if is_whole else {}
    return _Made(function, wholes, shown, made[-1] if is_counted else None)


def _is_taken_apart(node: exp.Expr) -> bool:
    """Whether only a field of the value is read."""
    above = node.parent
    while isinstance(above, exp.Paren):
        above = above.parent
    return isinstance(above, exp.Dot) and isinstance(above.expression, exp.Identifier)


def _has_fields(call: Expression, child: Operator, context: Context) -> bool:
    """Whether the function returns rows and not single values."""
    try:
        return type_over(context, call, child).kind == "c"
    except UnsupportedQuery:
        raise refuse("a function that returns sets of rows in the select list") from None


def _take_apart(call: Expression, fields: list[str], is_whole: bool, is_counted: bool) -> Expression:
    """The call as a query whose columns are the fields, the row itself, and its number."""
    bare, schema = bare_call(call.node), None
    if bare is not call.node:
        schema = call.node.this.copy()
    alias = exp.to_identifier("f")
    rows = exp.Table(
        this=bare.copy(), db=schema, alias=exp.TableAlias(this=alias.copy()), ordinality=is_counted or None
    )
    taken = [exp.Dot(this=alias.copy(), expression=exp.to_identifier(name, quoted=True)) for name in fields]
    listed: list[exp.Expr] = [*taken]
    if is_whole:
        listed.append(exp.Var(this="f"))
    if is_counted:
        listed.append(exp.Dot(this=alias.copy(), expression=exp.to_identifier("ordinality")))
    return Expression(exp.Subquery(this=exp.Select(expressions=listed).from_(rows, copy=False)))


def _expansion_order(block: Block, arriving: RowOrder, number: Expression, *, is_free: bool) -> RowOrder:
    """The order in which rows are expanded one after the other."""
    key = row_key(block.operator)
    if not is_free:
        arriving.require("LIMIT or OFFSET without ORDER BY")
        if key is None:
            raise refuse("LIMIT or OFFSET over a function that returns sets, for rows without a key,")
    if key is None or arriving.is_lost:
        return RowOrder(is_lost=True)
    last = [OrderItem(value, False, False) for value in (*(column(name) for name in key), number)]
    return RowOrder((*arriving.items, *(item for item in last if item not in arriving.items)))
