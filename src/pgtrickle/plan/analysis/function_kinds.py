"""Which kinds of functions an expression calls."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from pgtrickle.plan.analysis.context import Context
from pgtrickle.plan.expressions import Expression
from pgtrickle.plan.refusals import refuse


def parts_here(node: exp.Expr) -> Iterator[exp.Expr]:
    """The node and all below it, without what subqueries have inside."""
    yield node
    for child in node.iter_expressions():
        if not isinstance(child, exp.Query):
            yield from parts_here(child)


def has_aggregates(node: exp.Select, context: Context) -> bool:
    """Whether the select list, HAVING or ORDER BY calls an aggregate over the groups."""
    places = [*node.expressions]
    places += [node.args[clause] for clause in ("having", "order") if node.args.get(clause)]
    return any(_has_call(place, context) for place in places)


def _has_call(node: exp.Expr, context: Context) -> bool:
    if isinstance(node, exp.Query):
        return False
    if isinstance(node, exp.Window):
        return any(_has_call(part, context) for part in window_parts(node))
    return is_aggregate(node, context) or any(_has_call(part, context) for part in node.iter_expressions())


def window_parts(node: exp.Window) -> list[exp.Expr]:
    """What a window call reads: its arguments, its filter, its OVER clause; not the call itself."""
    call = node.this
    parts: list[exp.Expr] = []
    if isinstance(call, exp.Filter):
        parts.append(call.expression)
        call = call.this
    parts += list(bare_call(call).iter_expressions())
    return parts + [part for part in node.iter_expressions() if part is not node.this]


def bare_call(node: exp.Expr) -> exp.Expr:
    """A call without the schema of its function."""
    return node.expression if isinstance(node, exp.Dot) else node


def is_aggregate(node: exp.Expr, context: Context) -> bool:
    """Whether the node is a call of an aggregate, with its FILTER and WITHIN GROUP."""
    if isinstance(node, (exp.AggFunc, exp.WithinGroup, exp.Filter)):
        return True
    return _function_name(node) in context.definition.aggregates


def _function_name(node: exp.Expr) -> str | None:
    """The function that a node calls, as `Definition` names it; None if it is no call by name."""
    call = bare_call(node)
    if not isinstance(call, exp.Anonymous):
        return None
    holder = call.parent
    is_qualified = isinstance(holder, exp.Dot) and holder.expression is call
    schema = f"{holder.this.name}." if isinstance(holder, exp.Dot) and is_qualified else ""
    return schema + call.name.lower()


def set_functions(node: exp.Expr, context: Context) -> list[exp.Expr]:
    """The calls of functions that return sets, outermost first."""
    found = [part for part in parts_here(node) if is_set_function(part, context)]
    return [part for part in found if not isinstance(part.parent, exp.Dot)]


def require_no_sets(expression: Expression, context: Context) -> None:
    """Refuse an expression that would make several rows where a row has one value."""
    if set_functions(expression.node, context):
        raise refuse("a function that returns sets in this place")


def has_set_functions(node: exp.Select, context: Context) -> bool:
    """Whether the select list calls a function that returns a set."""
    return any(set_functions(item, context) for item in node.expressions)


def is_set_function(node: exp.Expr, context: Context) -> bool:
    """Whether the node is a call of a function that returns a set."""
    call = bare_call(node)
    if isinstance(call, exp.Unnest):
        return True
    return _function_name(call) in context.definition.set_functions


def is_grouping(node: exp.Expr) -> bool:
    """Whether the node is a call of GROUPING."""
    return isinstance(node, exp.Anonymous) and node.name.lower() == "grouping"
