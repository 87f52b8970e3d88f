"""The select list and what stands after it: windows, DISTINCT, ORDER BY and LIMIT."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from pgtrickle.plan.analysis.block import Block, Outputs
from pgtrickle.plan.analysis.context import Context, refuse
from pgtrickle.plan.analysis.functions_in import set_functions
from pgtrickle.plan.analysis.grouping import Rows
from pgtrickle.plan.analysis.ordering import Order, cut_of, distinct, first_of_each, ordered_by, top
from pgtrickle.plan.analysis.table_functions import table_function
from pgtrickle.plan.analysis.windows import Windows
from pgtrickle.plan.dialect import written
from pgtrickle.plan.expressions import Expression, column
from pgtrickle.plan.operators import Operator


def selected(node: exp.Select, rows: Rows, context: Context) -> Block:
    """The block of a query whose rows, grouped or not, are known."""
    before = rows.attachments.operator
    outputs = tuple((item.alias_or_name, rows.attachments.value(item.unalias())) for item in node.expressions)
    order = _order(node, outputs, rows)
    on = _distinct_on(node, rows)
    operator = rows.attachments.operator
    if rows.is_total:
        return _total(node, rows, outputs, is_attached=operator is not before, context=context)
    block = Block(operator, outputs, rows.correlated)
    block, order, on = _windowed(block, order, on, context)
    block = _with_set_functions(block, context)
    if on:
        block = first_of_each(block, on, order, context)
    elif node.args.get("distinct"):
        shown = [expression for _, expression in block.outputs]
        block = distinct(block, context)
        order = [replace(item, value=_moved(item.value, shown, block)) for item in order]
    cut = cut_of(node)
    return block if cut.is_nothing else top(block, order, cut, context)


def _order(node: exp.Select, outputs: Outputs, rows: Rows) -> list[Order]:
    clause = node.args.get("order")
    named = dict(reversed(outputs))
    # the same subquery must not be asked twice
    texts = [written(item.unalias().unnest()) for item in node.expressions]
    shown = dict(zip(texts, (expression for _, expression in outputs), strict=True))
    found: list[Order] = []
    for item in clause.expressions if clause and not _is_free(node) else []:
        bare = item.this
        if isinstance(bare, exp.Column) and not bare.table and bare.name in named:
            found.append(ordered_by(item, named[bare.name]))
        elif written(bare.unnest()) in shown:
            found.append(ordered_by(item, shown[written(bare.unnest())]))
        else:
            found.append(ordered_by(item, rows.attachments.value(bare)))
    return found


def _is_free(node: exp.Select) -> bool:
    """Whether the order of the rows does not matter."""
    distinct_clause = node.args.get("distinct")
    has_on = isinstance(distinct_clause, exp.Distinct) and distinct_clause.args.get("on")
    return cut_of(node).is_nothing and not has_on


def _distinct_on(node: exp.Select, rows: Rows) -> list[Expression]:
    clause = node.args.get("distinct")
    on = clause.args.get("on") if isinstance(clause, exp.Distinct) else None
    if on is None:
        return []
    bare = on.unnest()
    items = bare.expressions if isinstance(bare, exp.Tuple) else [bare]
    return [rows.attachments.value(item) for item in items]


def _total(node: exp.Select, rows: Rows, outputs: Outputs, *, is_attached: bool, context: Context) -> Block:
    """An aggregate without GROUP BY that has a row for each row of the surrounding query."""
    cut = cut_of(node)
    has_windows = any(e.node.find(exp.Window) for _, e in outputs)
    has_sets = any(set_functions(e.node, context) for _, e in outputs)
    if is_attached or has_windows or has_sets:
        raise refuse("a subquery, window or set beside a correlated aggregate")
    if cut.offset or cut.limit == 0:
        raise refuse("LIMIT 0 or OFFSET over a correlated aggregate")
    return Block(rows.attachments.operator, outputs, rows.correlated, True, rows.condition)


def _windowed(
    block: Block, order: list[Order], on: list[Expression], context: Context
) -> tuple[Block, list[Order], list[Expression]]:
    """The block with its window calls as columns."""
    expressions = [*(e for _, e in block.outputs), *(item.value for item in order), *on]
    if not any(expression.node.find(exp.Window) for expression in expressions):
        return block, order, on
    windows = Windows(block.operator, block.correlated, context)
    outputs = tuple((name, windows.rewritten(e)) for name, e in block.outputs)
    order = [replace(item, value=windows.rewritten(item.value)) for item in order]
    on = [windows.rewritten(expression) for expression in on]
    return Block(windows.operator(), outputs, windows.correlated), order, on


def _with_set_functions(block: Block, context: Context) -> Block:
    """A function in the select list that returns a set makes one row of each of its values."""
    calls = {Expression(c): c for _, e in block.outputs for c in set_functions(e.node, context)}
    if not calls:
        return block
    if len(calls) > 1:
        raise refuse("several functions that return sets in one select list")
    (call,) = calls
    operator: Operator = table_function(block.operator, call, ["value"], context)
    made = column(operator.columns[-1].name).node

    def replaced(node: exp.Expr) -> exp.Expr:
        return made.copy() if Expression(node) == call else node

    outputs = tuple((name, Expression(e.node.copy().transform(replaced))) for name, e in block.outputs)
    return replace(block, operator=operator, outputs=outputs)


def _moved(value: Expression, shown: list[Expression], block: Block) -> Expression:
    """What an item of ORDER BY is after DISTINCT: one of the outputs, or a constant."""
    if not value.columns:
        return value
    for expression, (_, after) in zip(shown, block.outputs, strict=True):
        if expression == value or Expression(expression.node.unnest()) == Expression(value.node.unnest()):
            return after
    raise refuse("ORDER BY an expression that DISTINCT does not show")
