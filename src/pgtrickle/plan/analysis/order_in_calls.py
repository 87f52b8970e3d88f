"""Aggregates and window functions whose value depends on the order in which rows arrive."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from pgtrickle.model.source import PgType
from pgtrickle.plan.aggregates import OrderEffect, aggregate_of
from pgtrickle.plan.analysis.function_kinds import bare_call
from pgtrickle.plan.analysis.row_order import OrderItem, RowOrder
from pgtrickle.plan.expressions import Expression
from pgtrickle.plan.expressions.dialect import to_sql
from pgtrickle.plan.expressions.syntax import WordedCall
from pgtrickle.plan.refusals import refuse

_FLOATS = frozenset({"real", "double precision"})

_BY_PEERS = frozenset({"rank", "dense_rank", "percent_rank", "cume_dist"})
"""Window functions that look at which rows are equal in order, and not at which comes first."""

_FRAMELESS = frozenset({"row_number", "ntile", "lag", "lead"})
"""Window functions that look at the order of all rows, whatever the frame."""


def depends_on_order(call: exp.Expr, type_of: Callable[[exp.Expr], PgType]) -> bool:
    """Whether an aggregate, without its FILTER, can give something else if its rows come otherwise."""
    bare = bare_call(call)
    if bare is not call:
        return True
    if isinstance(call, exp.WithinGroup):
        return False
    function = aggregate_of(call)
    if function is None:
        return True
    if function.order is OrderEffect.LAST_DIGITS:
        value = _last(call)
        return value is not None and type_of(_value(value)).base in _FLOATS
    return function.order is not OrderEffect.NONE


def in_order(call: exp.Expr, order: RowOrder, items: tuple[OrderItem, ...]) -> exp.Expr:
    """The call with the order of its rows spelled out, after the order that it asks for itself."""
    last = _last(call)
    if last is None and isinstance(bare_call(call), WordedCall):
        # it takes no ORDER BY
        order.after_reordering().require(f"{to_sql(call)} without ORDER BY")
    if last is None or isinstance(last, (exp.Distinct, exp.Star)):
        # DISTINCT puts the values into an order of its own
        return call
    if not isinstance(last, exp.Order):
        if order.is_lost and _is_loose(call):
            return call
        order.require(f"{to_sql(call)} without ORDER BY")
    return _add_order(call, last, items) if items else call


def _is_loose(call: exp.Expr) -> bool:
    """Whether the call has several right answers: any value, or any last digits of a float."""
    function = aggregate_of(call)
    return function is not None and function.order in {OrderEffect.LAST_DIGITS, OrderEffect.ANY_VALUE}


def _add_order(call: exp.Expr, last: exp.Expr, items: tuple[OrderItem, ...]) -> exp.Expr:
    own = [item.copy() for item in last.expressions] if isinstance(last, exp.Order) else []
    known = {to_sql(item.this) for item in own}
    more = [item.node() for item in items if to_sql(item.value.node) not in known]
    ordered = exp.Order(this=_value(last).copy(), expressions=[*own, *more])
    call = call.copy()
    found = _last(call)
    assert found is not None
    found.replace(ordered)
    return call


def _last(call: exp.Expr) -> exp.Expr | None:
    """The last argument of a call, which is where an ORDER BY stands."""
    bare = bare_call(call)
    if isinstance(bare, exp.Anonymous):
        return bare.expressions[-1] if bare.expressions else None
    if isinstance(bare, WordedCall):
        return bare.expressions[0] if len(bare.expressions) == 1 else None
    found = bare.args.get("this")
    return found if isinstance(found, exp.Expr) else None


def _value(last: exp.Expr) -> exp.Expr:
    """An argument without its ORDER BY or DISTINCT."""
    if isinstance(last, exp.Order):
        return _value(last.this)
    return last.expressions[0] if isinstance(last, exp.Distinct) else last


def window_in_order(
    node: exp.Window, order: RowOrder, items: tuple[OrderItem, ...], key: tuple[str, ...] | None
) -> None:
    """Spell out the order of the rows, which the `key` identifies, if a window call depends on it."""
    if not items and not order.is_lost:
        return
    call = node.this.this if isinstance(node.this, exp.Filter) else node.this
    name = call.name.lower() if isinstance(call, exp.Anonymous) else ""
    spec: exp.WindowSpec | None = node.args.get("spec")
    kind = str(spec.args.get("kind") or "").upper() if spec else ""
    own = list(node.args["order"].expressions) if node.args.get("order") else []
    known = {to_sql(item.this) for item in own}
    more = [item.node() for item in items if to_sql(item.value.node) not in known]
    if key is not None and {Expression(item.this).column for item in own} >= set(key):
        more = []
    is_plain = isinstance(call, (exp.Count, exp.Min, exp.Max, exp.Sum, exp.Avg))
    if name in _BY_PEERS or (is_plain and kind != "ROWS") or (own and not more):
        return
    is_excluding = spec is not None and spec.args.get("exclude")
    if (own and name not in _FRAMELESS) or is_excluding:
        # a frame ends with rows that are equal in order, which more order would tell apart
        raise refuse(f"{to_sql(node)}, whose ties may be in the order of a subquery,")
    if not own:
        _require_unsorted(node, order)
    if more:
        node.set("order", exp.Order(expressions=[*own, *more]))
    if name not in _FRAMELESS and kind != "ROWS":
        # without an order all rows are equal, so that every frame was the whole partition
        whole = exp.WindowSpec(
            kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end="UNBOUNDED", end_side="FOLLOWING"
        )
        node.set("spec", whole)


def _require_unsorted(node: exp.Window, order: RowOrder) -> None:
    """Refuse a call without ORDER BY if PostgreSQL sorts its rows by the partition: ties need not stay."""
    what = f"{to_sql(node)} without ORDER BY"
    order.require(what)
    if not order.begins_with([Expression(part) for part in node.args.get("partition_by") or []]):
        order.after_reordering().require(what)
