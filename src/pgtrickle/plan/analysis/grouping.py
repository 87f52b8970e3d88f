"""The groups of a query block: FROM and WHERE below, the select list and HAVING above."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from pgtrickle.plan.analysis.aggregate_levels import belongs_to, calls_of
from pgtrickle.plan.analysis.aggregation import Grouping
from pgtrickle.plan.analysis.block import Surroundings
from pgtrickle.plan.analysis.correlation import correlation_keys
from pgtrickle.plan.analysis.function_kinds import is_aggregate
from pgtrickle.plan.analysis.grouping_sets import (
    GroupingSets,
    grouping_sets,
    is_plain,
    over_sets,
    require_distinct_keys,
    tell_keys_apart,
)
from pgtrickle.plan.analysis.row_order import NO_ORDER, RowOrder
from pgtrickle.plan.analysis.scope import Scope, has_subquery
from pgtrickle.plan.analysis.subqueries import Attachments
from pgtrickle.plan.expressions import Expression, column
from pgtrickle.plan.expressions.dialect import to_sql
from pgtrickle.plan.operators import Operator
from pgtrickle.plan.refusals import refuse

LIFTED = "calls of the surrounding query"
"""The relation whose columns are such calls."""


@dataclass(frozen=True, slots=True)
class BlockRows:
    """The rows that a select list is evaluated over.

    For `correlated`, `order`, `is_total` and `condition` see `Block`.
    """

    attachments: Attachments
    correlated: tuple[Expression, ...]
    order: RowOrder
    is_total: bool = False
    condition: Expression | None = None


class Groups:
    """The groups of one block; `given` is what stands for columns of a surrounding query.

    `lifted` are calls that stand in subqueries but aggregate rows of this block, which arrive in `order`.
    """

    def __init__(
        self,
        node: exp.Select,
        scope: Scope,
        given: dict[str, Expression],
        lifted: dict[str, exp.Expr],
        order: RowOrder,
        surroundings: Surroundings,
    ) -> None:
        self._lifted = lifted
        self._order = order
        self._group: exp.Group | None = node.args.get("group")
        self._having: exp.Having | None = node.args.get("having")
        self._places = list(_places(node))
        self._shown = [item.unalias().unnest() for item in node.expressions]
        self._scope = scope
        self._given = given
        self._surroundings = surroundings
        self._context = surroundings.context

    def rows(self, child: Operator, correlated: tuple[Expression, ...]) -> BlockRows:
        """The groups of the child's rows."""
        found = correlation_keys(child, correlated, "GROUP BY or an aggregate", self._context)
        below = found.operator
        if self._group and not is_plain(self._group):
            require_distinct_keys(self._group, self._shown, self._context.limits)
            below, self._scope = tell_keys_apart(self._group, below, self._scope, self._context)
        inner = Attachments(below, self._scope, self._surroundings)
        # a subquery inside an aggregate is asked by each row, one beside it by each group
        asked = {to_sql(call): inner.value(call) for call in self._calls_with_subqueries()}

        def key_value(node: exp.Expr) -> Expression:
            asked[to_sql(node)] = found = inner.value(node)
            if isinstance(node, exp.Query):
                # it stands in parentheses elsewhere
                asked[to_sql(exp.Subquery(this=node.copy()))] = found
            return found

        sets = grouping_sets(self._group, key_value, self._context.limits) if self._group else None
        is_total = sets is None and bool(correlated)
        # with GROUP BY they are keys, or columns that such keys determine
        constants = self._given if sets is None else {}
        grouping = Grouping(inner.operator, constants, self._group_row_order(sets), self._context)
        grouping.determined = frozenset(self._given)
        names = {name: grouping.add_key(column(name)).name for name in found.names}
        for key in sets.keys if sets else ():
            grouping.add_key(key)

        def plain(part: exp.Expr) -> Expression:
            known = asked.get(to_sql(part))
            rewritten = grouping.rewrite(known or self._scope.resolve(part))
            return grouping.over_no_rows(rewritten) if is_total else rewritten

        grouping.prefetch_types(self._scope.resolve(p) for p in self._places if not has_subquery(p))
        for place in self._places:
            self._collect(place, grouping, asked)
        outside = {n: plain(call) for n, call in self._lifted.items()}
        operator: Operator = grouping.operator()
        if sets is not None and not (sets.is_plain and not grouping.bits):
            own = tuple(frozenset(grouping.add_key(key).name for key in keys) for keys in sets.sets)
            shared = frozenset(names.values())
            operator = over_sets(grouping.operator(), own, grouping.bits, shared, self._context)
        above = Scope(self._scope.relations, self._scope.merged, self._scope.outer, grouping.rewrite)
        above.outer = Scope({LIFTED: outside}, outer=self._scope.outer)
        attachments = Attachments(operator, above, self._surroundings, plain, asked.keys())
        return self._add_having(attachments, found.renamed_conditions(names), is_total)

    def _group_row_order(self, sets: GroupingSets | None) -> RowOrder:
        """The order in which a group gets its rows: they may be sorted by the keys, or for an aggregate."""
        keys = list(sets.keys) if sets else []
        is_sorted = self._order.begins_with(keys) and (sets is None or sets.is_plain)
        calls = (call for place in self._places for call in place.find_all(exp.Distinct, exp.Ordered))
        sorts = any(call.find_ancestor(exp.Window, exp.WithinGroup) is None for call in calls)
        if is_sorted and not sorts:
            return self._order
        return replace(self._order, is_lost=self._order != NO_ORDER)

    def _add_having(
        self, attachments: Attachments, correlated: tuple[Expression, ...], is_total: bool
    ) -> BlockRows:
        order = self._order.after_reordering()
        if self._having is None:
            return BlockRows(attachments, correlated, order, is_total)
        if is_total:
            return BlockRows(attachments, correlated, order, is_total, attachments.value(self._having.this))
        attachments.keep(self._having.this)
        return BlockRows(attachments, (*correlated, *attachments.correlated), order)

    def _calls_with_subqueries(self) -> Iterator[exp.Expr]:
        """The aggregate calls with subqueries in them."""
        for place in [*self._places, *self._lifted.values()]:
            yield from _calls_asking(place, self._surroundings)

    def _collect(self, node: exp.Expr, grouping: Grouping, asked: dict[str, Expression]) -> None:
        """Add everything the expression reads to the groups."""
        known = asked.get(to_sql(node))
        if known is not None:
            grouping.rewrite(known)
        elif isinstance(node, exp.Query):
            for reference in node.find_all(exp.Column):
                if self._scope.has(reference) and self._scope.find_named(reference):
                    grouping.rewrite(self._scope.column(reference))
        elif not has_subquery(node):
            grouping.rewrite(self._scope.resolve(node))
        else:
            for part in node.iter_expressions():
                self._collect(part, grouping, asked)


def lift_calls(node: exp.Select, surroundings: Surroundings) -> tuple[exp.Select, dict[str, exp.Expr]]:
    """The query with columns instead of those calls in its subqueries that aggregate its own rows."""
    found: dict[str, exp.Expr] = {}
    node = node.copy()
    for call in calls_of(node, surroundings.context):
        if belongs_to(call, node):
            name = f"call {len(found)}"
            found[name] = call.copy()
            call.replace(exp.column(name, table=LIFTED, quoted=True))
    return node, found


def _places(node: exp.Select) -> Iterator[exp.Expr]:
    """The expressions that are evaluated over groups."""
    for item in node.expressions:
        yield item.unalias()
    if having := node.args.get("having"):
        yield having.this
    if order := node.args.get("order"):
        for item in order.expressions:
            if not isinstance(item.this, exp.Column) or item.this.table:
                yield item.this
    distinct = node.args.get("distinct")
    if isinstance(distinct, exp.Distinct) and distinct.args.get("on"):
        yield from distinct.args["on"].unnest().expressions or [distinct.args["on"].unnest()]


def _calls_asking(node: exp.Expr, surroundings: Surroundings) -> Iterator[exp.Expr]:
    if not has_subquery(node) or isinstance(node, exp.Query):
        return
    if isinstance(node, exp.Window):
        raise refuse("a subquery in a window function over groups")
    if is_aggregate(node, surroundings.context):
        yield node
        return
    for part in node.iter_expressions():
        yield from _calls_asking(part, surroundings)
