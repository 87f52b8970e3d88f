"""The select list and what stands after it: windows, DISTINCT, ORDER BY and LIMIT."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from pgtrickle.plan.analysis.block import Block, Outputs, Surroundings
from pgtrickle.plan.analysis.context import Context
from pgtrickle.plan.analysis.function_kinds import set_functions
from pgtrickle.plan.analysis.grouping import BlockRows
from pgtrickle.plan.analysis.ordering import cut_of, cut_rows, distinct, first_of_each, order_item
from pgtrickle.plan.analysis.row_order import OrderItem, RowOrder
from pgtrickle.plan.analysis.scope import has_subquery
from pgtrickle.plan.analysis.set_returning import Expansion, expand
from pgtrickle.plan.analysis.windows import Windows
from pgtrickle.plan.expressions import Expression
from pgtrickle.plan.expressions.dialect import to_sql
from pgtrickle.plan.refusals import refuse


def select_outputs(node: exp.Select, rows: BlockRows, surroundings: Surroundings) -> Block:
    """The block of a query whose rows, grouped or not, are known."""
    context = surroundings.context
    before = rows.attachments.operator
    outputs = tuple((item.alias_or_name, rows.attachments.value(item.unalias())) for item in node.expressions)
    is_expanding = any(set_functions(item, context) for item in _order_items(node))
    is_unread = surroundings.is_outermost and _is_free(node) and not is_expanding
    order = [] if is_unread else _order(node, outputs, rows)
    on = _distinct_on(node, rows)
    operator = rows.attachments.operator
    if rows.attachments.may_fail and not cut_of(node).is_nothing:
        raise refuse("a subquery under LIMIT or OFFSET that is an error if it has several rows")
    if rows.is_total:
        return _total(node, rows, outputs, is_attached=operator is not before, context=context)
    arriving = rows.order
    if order is None:
        order, arriving = [], RowOrder(is_lost=True)
    block = Block(operator, outputs, rows.correlated, order=arriving)
    block, order, on = _add_windows(block, order, on, context)
    expansion = Expansion(tuple(order), tuple(on), is_unread, _is_free(node), _is_distinct(node))
    block, order = expand(block, expansion, context)
    if on:
        if not order and not block.order.begins_with(on):
            block.order.after_reordering().require("DISTINCT ON without ORDER BY")
        in_order = block.order.then_by(order)
        block = first_of_each(block, on, list(in_order.items), context)
        block = replace(block, order=in_order)
    elif node.args.get("distinct"):
        shown = [expression for _, expression in block.outputs]
        arriving = block.order.after_reordering()
        block = distinct(block, context)
        order = [replace(item, value=_move(item.value, shown, block)) for item in order]
        block = replace(block, order=arriving.then_by(order))
    else:
        block = replace(block, order=block.order.then_by(order))
    return cut_rows(block, order, cut_of(node), context)


def _order(node: exp.Select, outputs: Outputs, rows: BlockRows) -> list[OrderItem] | None:
    """The items of ORDER BY; None if the order does not matter here, and is not simply known."""
    named = dict(reversed(outputs))
    # the same subquery must not be asked twice
    texts = [to_sql(item.unalias().unnest()) for item in node.expressions]
    shown = dict(zip(texts, (expression for _, expression in outputs), strict=True))
    found: list[OrderItem] = []
    for item in _order_items(node):
        bare = item.this
        if isinstance(bare, exp.Column) and not bare.table and bare.name in named:
            value = named[bare.name]
        elif to_sql(bare.unnest()) in shown:
            value = shown[to_sql(bare.unnest())]
        elif _is_free(node) and (has_subquery(bare) or bare.find(exp.Window)):
            return None
        else:
            value = rows.attachments.value(bare)
        if _is_free(node) and not isinstance(item, exp.Ordered):
            return None
        found.append(order_item(item, value))
    return found


def _order_items(node: exp.Select) -> list[exp.Expr]:
    clause = node.args.get("order")
    return list(clause.expressions) if clause else []


def _is_free(node: exp.Select) -> bool:
    """Whether the order of the rows does not matter for which rows there are."""
    return cut_of(node).is_nothing and not _has_on(node)


def _is_distinct(node: exp.Select) -> bool:
    return bool(node.args.get("distinct")) and not _has_on(node)


def _has_on(node: exp.Select) -> bool:
    clause = node.args.get("distinct")
    return isinstance(clause, exp.Distinct) and bool(clause.args.get("on"))


def _distinct_on(node: exp.Select, rows: BlockRows) -> list[Expression]:
    clause = node.args.get("distinct")
    on = clause.args.get("on") if isinstance(clause, exp.Distinct) else None
    if on is None:
        return []
    bare = on.unnest()
    items = bare.expressions if isinstance(bare, exp.Tuple) else [bare]
    return [rows.attachments.value(item) for item in items]


def _total(
    node: exp.Select, rows: BlockRows, outputs: Outputs, *, is_attached: bool, context: Context
) -> Block:
    """An aggregate without GROUP BY that has a row for each row of the surrounding query."""
    cut = cut_of(node)
    has_windows = any(e.node.find(exp.Window) for _, e in outputs)
    has_sets = any(set_functions(e.node, context) for _, e in outputs)
    if is_attached or has_windows or has_sets:
        raise refuse("a subquery, window or set beside a correlated aggregate")
    if cut.offset or cut.limit == 0:
        raise refuse("LIMIT 0 or OFFSET over a correlated aggregate")
    return Block(rows.attachments.operator, outputs, rows.correlated, True, rows.condition)


def _add_windows(
    block: Block, order: list[OrderItem], on: list[Expression], context: Context
) -> tuple[Block, list[OrderItem], list[Expression]]:
    """The block with its window calls as columns."""
    expressions = [*(e for _, e in block.outputs), *(item.value for item in order), *on]
    calls = [call for expression in expressions for call in expression.node.find_all(exp.Window)]
    if not calls:
        return block, order, on
    # one window sorts the rows for itself, and another one gets them so
    arriving = block.order if len({_sort_text(c) for c in calls}) == 1 else block.order.after_reordering()
    windows = Windows(block.operator, block.correlated, arriving, context)
    outputs = tuple((name, windows.rewrite(e)) for name, e in block.outputs)
    order = [replace(item, value=windows.rewrite(item.value)) for item in order]
    on = [windows.rewrite(expression) for expression in on]
    sorted_again = block.order.after_reordering()
    return Block(windows.operator(), outputs, windows.correlated, order=sorted_again), order, on


def _sort_text(call: exp.Window) -> str:
    """What rows are sorted by for a window call, as text."""
    parts = [*(call.args.get("partition_by") or []), call.args.get("order")]
    return ", ".join(to_sql(part) for part in parts if part is not None)


def _move(value: Expression, shown: list[Expression], block: Block) -> Expression:
    """What an item of ORDER BY is after DISTINCT: one of the outputs, or a constant."""
    if not value.columns:
        return value
    for expression, (_, after) in zip(shown, block.outputs, strict=True):
        if expression == value or Expression(expression.node.unnest()) == Expression(value.node.unnest()):
            return after
    raise refuse("ORDER BY an expression that DISTINCT does not show")
