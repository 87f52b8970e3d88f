"""To which query an aggregate belongs: SQL goes by what it reads, and not by where it stands.

An aggregate belongs to the innermost query one of whose columns it reads; what it reads inside of
subqueries of its own counts too. If it reads no column, it belongs to the query in which it stands.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from pgtrickle.plan.analysis.context import Context
from pgtrickle.plan.analysis.function_kinds import is_aggregate, is_grouping
from pgtrickle.plan.refusals import refuse


def calls_of(query: exp.Expr, context: Context) -> Iterator[exp.Expr]:
    """All aggregates and GROUPING calls in a query, those of its subqueries included."""
    for node in list(query.walk()):
        if not _is_part(node) and (is_aggregate(node, context) or is_grouping(node)):
            yield node


def _is_part(node: exp.Expr) -> bool:
    """Whether the node is what FILTER, WITHIN GROUP or OVER stands after, or a name after a schema."""
    if isinstance(node.parent, exp.Dot):
        return node.arg_key == "expression"
    return node.arg_key == "this" and isinstance(node.parent, (exp.Filter, exp.WithinGroup, exp.Window))


def belongs_to(call: exp.Expr, query: exp.Select) -> bool:
    """Whether a call inside of a query's subqueries aggregates the rows of the query itself."""
    around = list(_selects_around(call, query))
    is_inside = len(around) > 1 and around[-1] is query
    return is_inside and _level(call, around) == len(around) - 1


def check_levels(query: exp.Expr, context: Context) -> None:
    """Refuse aggregates in a subquery that aggregate rows of a surrounding query."""
    for call in calls_of(query, context):
        inside = list(_selects_around(call, query))
        if inside and _level(call, inside) is None:
            raise refuse("an aggregate of the surrounding query inside a subquery")


def _level(call: exp.Expr, around: list[exp.Select]) -> int | None:
    """The position of the query to which the call belongs; None if it is further out than all of them."""
    levels: list[int] = []
    is_reading = False
    for reference in call.find_all(exp.Column):
        if any(_offers(select, reference) for select in _selects_around(reference, call)):
            continue
        is_reading = True
        offering = [number for number, select in enumerate(around) if _offers(select, reference)]
        levels += offering[:1]
    if levels:
        return min(levels)
    return None if is_reading else 0


def _selects_around(node: exp.Expr, last: exp.Expr | None = None) -> Iterator[exp.Select]:
    """The queries around a node, the innermost first, up to `last`."""
    above: exp.Expr | None = node
    while above is not None:
        if isinstance(above, exp.Select):
            yield above
        above = None if above is last else above.parent


def _offers(select: exp.Select, reference: exp.Column) -> bool:
    """Whether the query reads the relation of a reference; names of relations differ between queries."""
    clause = select.args.get("from_")
    items = [clause.this] if clause else []
    joins = select.args.get("joins") or []
    if reference.table:
        return any(reference.table in _names(item) for item in [*items, *(join.this for join in joins)])
    # only columns that USING merges have no relation before their name
    merged = (name.name for join in select.find_all(exp.Join) for name in join.args.get("using") or [])
    return reference.name in merged


def _names(item: exp.Expr) -> Iterator[str]:
    """The names of the relations that an item of FROM has."""
    if item.alias_or_name:
        yield item.alias_or_name
    if isinstance(item, exp.Subquery) and not isinstance(item.this, (exp.Select, exp.SetOperation)):
        yield from _names(item.this)
    for join in item.args.get("joins") or []:
        yield from _names(join.this)
