"""Chooses how the result of a query is maintained."""

from __future__ import annotations

from dataclasses import replace

from pgtrickle.model.errors import UnsupportedQuery
from pgtrickle.plan.aggregates import EXACT
from pgtrickle.plan.analysis.block import Block
from pgtrickle.plan.analysis.context import Context, QueryDefinition
from pgtrickle.plan.expressions import column
from pgtrickle.plan.lowering.exactness import require_exact
from pgtrickle.plan.operators import Aggregate, Distinct, Filter, GroupKey, Operator, Recursive, Scan, Top
from pgtrickle.plan.program import Cut
from pgtrickle.plan.targets.groups import Grouped
from pgtrickle.plan.targets.merged import Merged
from pgtrickle.plan.targets.ordered import Ordered
from pgtrickle.plan.targets.replaced import Replaced
from pgtrickle.plan.targets.rows import Rows
from pgtrickle.plan.targets.shape import Shape


def choose_shape(block: Block, definition: QueryDefinition, context: Context) -> Shape:
    """The shape of a query: by what stands at the top of it, and whether its groups can be merged."""
    top = block.operator
    # rows that the query spells out have an order, and never change
    is_constant = not any(isinstance(part, Scan) for part in top.walk())
    if isinstance(top, Top) and not top.partition and not is_constant:
        grouped = _groups_at_top(replace(block, operator=top.child), definition)
        if grouped is None or not is_mergeable(grouped.aggregate) or not grouped.aggregate.keys:
            return Ordered(block, definition.outputs, context)
        return Merged(_with_cut(grouped, top))
    grouped = _groups_at_top(block, definition)
    if grouped is None:
        return Rows(_with_stored_recursion(block, definition), definition.outputs, context)
    if is_mergeable(grouped.aggregate):
        return Merged(grouped)
    return Replaced(grouped)


def _with_stored_recursion(block: Block, definition: QueryDefinition) -> Block:
    """The query; its recursion knows where its rows are stored, if the query shows exactly these rows."""
    recursion = block.operator
    if not isinstance(recursion, Recursive):
        return block
    shown = {e.column: name for (name, _), (_, e) in zip(definition.outputs, block.outputs, strict=True)}
    if shown.keys() != recursion.names or len(block.outputs) != len(shown):
        return block
    stored = tuple(shown[c.name] for c in recursion.columns)
    return replace(block, operator=replace(recursion, stored=stored))


def _with_cut(grouped: Grouped, top: Top) -> Grouped:
    """The groups with the order in which the first of them are shown."""
    names = tuple(dict.fromkeys(ordering.column for ordering in top.order))
    order = tuple((names.index(o.column), o.is_descending, o.has_nulls_first) for o in top.order)
    hidden = tuple((name, top.column(name).type, column(name)) for name in names)
    return replace(grouped, cut=Cut(order, top.limit, top.offset, top.has_ties), hidden=hidden)


def _groups_at_top(block: Block, definition: QueryDefinition) -> Grouped | None:
    """The groups at the top of the query, if it ends in groups."""
    operator: Operator = block.operator
    having = None
    if isinstance(operator, Filter) and isinstance(operator.child, Aggregate):
        having, operator = operator.condition, operator.child
    if isinstance(operator, Distinct):
        keys = tuple(GroupKey(c, column(c.name)) for c in operator.columns)
        operator = Aggregate(operator.child, keys, ())
    if not isinstance(operator, Aggregate):
        return None
    outputs = tuple(
        (name, pg_type, expression)
        for (name, pg_type), (_, expression) in zip(definition.outputs, block.outputs, strict=True)
    )
    return Grouped(operator, having, outputs)


def is_mergeable(aggregate: Aggregate) -> bool:
    """Whether the groups have a state that takes in a change."""
    is_known = all(call.function and EXACT[call.function].final for call in aggregate.calls)
    return is_known and all(_is_groupable(key, aggregate.child) for key in aggregate.keys)


def _is_groupable(key: GroupKey, child: Operator) -> bool:
    """Whether Spark groups by the key as PostgreSQL does."""
    try:
        require_exact(key.expression, child.columns)
    except UnsupportedQuery:
        return False
    return key.column.carrier.equality
