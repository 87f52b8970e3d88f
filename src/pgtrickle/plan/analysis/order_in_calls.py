"""Aggregates and window functions whose value depends on the order in which rows arrive."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from pgtrickle.model.source import PgType
from pgtrickle.plan.analysis.context import refuse
from pgtrickle.plan.analysis.delivered import Delivered, Order
from pgtrickle.plan.analysis.functions_in import bare_call
from pgtrickle.plan.dialect import written
from pgtrickle.plan.expressions import Expression

_FLOATS = frozenset({"real", "double precision"})

_INDIFFERENT = frozenset(
    {"every", "bit_and", "bit_or", "bit_xor", "range_agg", "range_intersect_agg", "regr_count"}
)
"""Aggregates that give the same in any order, besides those that the parser knows."""

_STATISTICS = frozenset({"stddev", "stddev_pop", "stddev_samp", "variance", "var_pop", "var_samp"})
"""Aggregates whose last digits depend on the order if they are computed of floats."""

_BY_PEERS = frozenset({"rank", "dense_rank", "percent_rank", "cume_dist"})
"""Window functions that look at which rows are equal in order, and not at which comes first."""

_FRAMELESS = frozenset({"row_number", "ntile", "lag", "lead"})
"""Window functions that look at the order of all rows, whatever the frame."""


def depends_on_order(call: exp.Expr, type_of: Callable[[exp.Expr], PgType]) -> bool:
    """Whether an aggregate, without its FILTER, can give something else if its rows come otherwise."""
    bare = bare_call(call)
    if bare is not call:
        return True
    if isinstance(call, (exp.Count, exp.Min, exp.Max, exp.LogicalAnd, exp.LogicalOr, exp.WithinGroup)):
        return False
    name = call.name.lower() if isinstance(call, exp.Anonymous) else ""
    if isinstance(call, (exp.Sum, exp.Avg)) or name in _STATISTICS:
        value = _last(call)
        return value is not None and type_of(_value(value)).base in _FLOATS
    return name not in _INDIFFERENT


def in_order(call: exp.Expr, order: Delivered, items: tuple[Order, ...]) -> exp.Expr:
    """The call with the order of its rows spelled out, after the order that it asks for itself."""
    last = _last(call)
    if last is None or isinstance(last, (exp.Distinct, exp.Star)):
        # DISTINCT puts the values into an order of its own
        return call
    if not isinstance(last, exp.Order):
        order.require(f"{written(call)} without ORDER BY")
    return _extended(call, last, items) if items else call


def _extended(call: exp.Expr, last: exp.Expr, items: tuple[Order, ...]) -> exp.Expr:
    own = [item.copy() for item in last.expressions] if isinstance(last, exp.Order) else []
    known = {written(item.this) for item in own}
    more = [item.node() for item in items if written(item.value.node) not in known]
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
    found = bare.args.get("this")
    return found if isinstance(found, exp.Expr) else None


def _value(last: exp.Expr) -> exp.Expr:
    """An argument without its ORDER BY or DISTINCT."""
    if isinstance(last, exp.Order):
        return _value(last.this)
    return last.expressions[0] if isinstance(last, exp.Distinct) else last


def window_in_order(node: exp.Window, order: Delivered, items: tuple[Order, ...]) -> None:
    """Spell out the order of the rows in a window call, if its value depends on it."""
    if not items and not order.is_lost:
        return
    call = node.this.this if isinstance(node.this, exp.Filter) else node.this
    name = call.name.lower() if isinstance(call, exp.Anonymous) else ""
    spec: exp.WindowSpec | None = node.args.get("spec")
    kind = str(spec.args.get("kind") or "").upper() if spec else ""
    own = list(node.args["order"].expressions) if node.args.get("order") else []
    is_plain = isinstance(call, (exp.Count, exp.Min, exp.Max, exp.Sum, exp.Avg))
    is_any = name in _BY_PEERS or (is_plain and kind != "ROWS" and name not in _FRAMELESS)
    if is_any or (own and name not in _FRAMELESS):
        return
    if not own:
        order.require(f"{written(node)} without ORDER BY")
        partition = [Expression(part) for part in node.args.get("partition_by") or []]
        if not order.begins_with(partition):
            # rows are sorted by the partition first, and ties need not stay as they are
            raise refuse(
                f"{written(node)} without ORDER BY over a subquery with ORDER BY whose order may not be kept"
            )
    if not items:
        return
    if spec is not None and spec.args.get("exclude"):
        raise refuse(f"{written(node)} over a subquery with ORDER BY")
    known = {written(item.this) for item in own}
    more = [item.node() for item in items if written(item.value.node) not in known]
    node.set("order", exp.Order(expressions=[*own, *more]))
    if name not in _FRAMELESS and kind != "ROWS":
        # without an order all rows are equal, so that every frame was the whole partition
        whole = exp.WindowSpec(
            kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end="UNBOUNDED", end_side="FOLLOWING"
        )
        node.set("spec", whole)
