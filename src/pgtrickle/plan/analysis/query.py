"""One query block after the other: SELECT, set operations, VALUES and WITH."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from pgtrickle.plan.analysis.block import Block, Surroundings
from pgtrickle.plan.analysis.context import Context
from pgtrickle.plan.analysis.domains import place_domain
from pgtrickle.plan.analysis.from_clause import relations_of
from pgtrickle.plan.analysis.function_kinds import has_aggregates
from pgtrickle.plan.analysis.grouping import BlockRows, Groups, lift_calls
from pgtrickle.plan.analysis.ordering import cut_of, cut_rows, order_item
from pgtrickle.plan.analysis.parsing import parse
from pgtrickle.plan.analysis.select_list import select_outputs
from pgtrickle.plan.analysis.set_operations import set_operation
from pgtrickle.plan.analysis.set_returning import with_expanded_keys
from pgtrickle.plan.analysis.subqueries import Attachments
from pgtrickle.plan.analysis.table_functions import values_block
from pgtrickle.plan.analysis.whole_rows import whole_row_names
from pgtrickle.plan.analysis.windows import inline_windows
from pgtrickle.plan.analysis.with_clause import with_names
from pgtrickle.plan.expressions import Expression, column
from pgtrickle.plan.refusals import refuse

__all__ = ["Block", "analyse", "parse"]


def analyse(node: exp.Expr, context: Context) -> Block:
    """The operators of a whole query."""
    context.whole_rows |= whole_row_names(node)
    try:
        return _analyse(node, Surroundings(context, _analyse, is_outermost=True))
    except RecursionError:
        raise context.limits.limit_error("max_depth") from None


def _analyse(node: exp.Expr, surroundings: Surroundings) -> Block:
    if isinstance(node, exp.Subquery):
        return _analyse(node.this, surroundings)
    if with_ := node.args.get("with_"):
        surroundings = with_names(with_, surroundings)
    if isinstance(node, exp.Select):
        return _select(node, surroundings)
    if isinstance(node, exp.SetOperation):
        return _cut(node, set_operation(node, surroundings), surroundings)
    if isinstance(node, exp.Values):
        return _cut(node, values_block(node, surroundings), surroundings)
    raise refuse(type(node).__name__.upper())


def _select(node: exp.Select, surroundings: Surroundings) -> Block:
    for part, name in (("qualify", "QUALIFY"), ("locks", "FOR UPDATE"), ("laterals", "LATERAL VIEW")):
        if node.args.get(part):
            raise refuse(name)
    node = inline_windows(node)
    given: dict[str, Expression] = {}
    own = surroundings.domain
    if own is not None and surroundings.outer is not None:
        own, outer = place_domain(own, surroundings.outer, surroundings.context)
        given = {name: column(outside) for outside, name in own.columns}
        surroundings = surroundings.inside(outer)
    relations = relations_of(node, surroundings, own)
    if where := node.args.get("where"):
        relations.add_condition(where.this)
    # PostgreSQL makes joins of the subqueries in a condition
    order = relations.order.after_reordering() if relations.deferred else relations.order
    operator, correlated = relations.join_all(surroundings)
    node, operator = with_expanded_keys(node, operator, relations.scope, surroundings.context)
    node, lifted = lift_calls(node, surroundings)
    if (
        lifted
        or node.args.get("group")
        or node.args.get("having")
        or has_aggregates(node, surroundings.context)
    ):
        groups = Groups(node, relations.scope, given, lifted, order, surroundings)
        return select_outputs(node, groups.rows(operator, correlated), surroundings)
    rows = BlockRows(Attachments(operator, relations.scope, surroundings), correlated, order)
    return select_outputs(node, rows, surroundings)


def _cut(node: exp.Expr, block: Block, surroundings: Surroundings) -> Block:
    """A set operation or VALUES in its order, with its LIMIT and OFFSET."""
    cut = cut_of(node)
    if cut.is_nothing and surroundings.is_outermost:
        return block
    items = node.args["order"].expressions if node.args.get("order") else []
    own = [order_item(item, _output(item.this, block)) for item in items]
    block = replace(block, order=block.order.then_by(own))
    return cut_rows(block, own, cut, surroundings.context)


def _output(node: exp.Expr, block: Block) -> Expression:
    """What an item of ORDER BY refers to by number or name."""
    if isinstance(node, exp.Literal) and not node.is_string:
        return block.outputs[int(node.this) - 1][1]
    for name, expression in block.outputs:
        if isinstance(node, exp.Column) and node.name == name:
            return expression
    raise refuse("ORDER BY an expression above a set operation")
