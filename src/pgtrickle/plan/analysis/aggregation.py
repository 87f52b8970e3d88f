"""GROUP BY, HAVING and aggregate calls: the rows of a block become groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp

from pgtrickle.model.source import PgType
from pgtrickle.plan.aggregates import is_zero_over_no_rows
from pgtrickle.plan.analysis.calls import Calls, require_known_over_no_rows
from pgtrickle.plan.analysis.columns import result_column
from pgtrickle.plan.analysis.context import Context
from pgtrickle.plan.analysis.function_kinds import is_aggregate, is_grouping, window_parts
from pgtrickle.plan.analysis.grouping_sets import Bits, count_of_rows
from pgtrickle.plan.analysis.row_order import RowOrder
from pgtrickle.plan.analysis.scan_pushdown import ScanPushdown
from pgtrickle.plan.carriers import carrier_of
from pgtrickle.plan.expressions import Expression, column
from pgtrickle.plan.expressions.dialect import to_sql
from pgtrickle.plan.operators import Aggregate, Column, GroupKey, Operator, Scan
from pgtrickle.plan.properties import is_unique
from pgtrickle.plan.refusals import refuse, refuse_correlation

_WRAPPED = (exp.Ordered, exp.Order, exp.Where, exp.Distinct)
"""Nodes that can have the text of what they hold, and are more than that."""

INTEGER = PgType("integer", "integer", "b", "N")


class Grouping:
    """Collects the keys and calls of one block, and rewrites its expressions over the groups.

    `given` are columns that are no keys but constant for the whole block: those of a surrounding query.
    The rows of `child` arrive in `order`. Columns that are `determined` are known to be equal within a group.
    """

    def __init__(
        self, child: Operator, given: dict[str, Expression], order: RowOrder, context: Context
    ) -> None:
        self._context = context
        self._names = child.names
        self._given = given
        self._pushdown = ScanPushdown(context, child)
        self._keys: dict[str, GroupKey] = {}
        self._bits: dict[str, Bits] = {}
        self.determined = frozenset[str]()
        self.calls = Calls(child, order, self._pushdown, context)

    def operator(self) -> Aggregate:
        """The aggregate with the keys and calls collected so far."""
        keys, calls = tuple(self._keys.values()), self.calls.all
        return Aggregate(
            self._pushdown.operator, keys, calls if keys or calls else (count_of_rows(self._context),)
        )

    @property
    def bits(self) -> tuple[Bits, ...]:
        """The `grouping(…)` calls that were collected."""
        return tuple(self._bits.values())

    def add_key(self, key: Expression) -> Column:
        """Group by this expression too."""
        text = _text(key.node)
        if text not in self._keys:
            if not key.columns <= self._names:
                raise refuse_correlation(f"grouping by {key}, which reads a surrounding query,")
            pushed = self._pushdown.for_spark(key)
            result = result_column(self._context, str(key), pushed, self._pushdown.operator)
            self._keys[text] = GroupKey(result, pushed)
        return self._keys[text].column

    def prefetch_types(self, expressions: Iterable[Expression]) -> None:
        """Ask at once for the types of all aggregates in these expressions of the block."""
        self.calls.prefetch_types(call for one in expressions for call in self._aggregates(one.node))

    def _aggregates(self, node: exp.Expr) -> Iterator[exp.Expr]:
        if not isinstance(node, exp.Window) and is_aggregate(node, self._context):
            yield node
            return
        for part in window_parts(node) if isinstance(node, exp.Window) else node.iter_expressions():
            yield from self._aggregates(part)

    def rewrite(self, expression: Expression) -> Expression:
        """An expression of the block over the groups: keys and calls become columns."""
        return Expression(self._rewrite_node(expression.node.copy()))

    def _rewrite_node(self, node: exp.Expr) -> exp.Expr:
        key = self._keys.get(_text(node)) if not isinstance(node, _WRAPPED) else None
        if key is not None:
            return column(key.column.name).node
        if isinstance(node, exp.Anonymous) and is_grouping(node):
            return column(self._grouping(node)).node
        if isinstance(node, exp.Window):
            for part in window_parts(node):
                part.replace(self._rewrite_node(part))
            return node
        if is_aggregate(node, self._context):
            return self.calls.rewrite(node)
        if isinstance(node, exp.Column):
            return self._column(node)
        for part in list(node.iter_expressions()):
            part.replace(self._rewrite_node(part))
        return node

    def _grouping(self, node: exp.Anonymous) -> str:
        text = _text(node)
        if text not in self._bits:
            keys = tuple(self.add_key(Expression(part)).name for part in node.expressions)
            fresh = Column(self._context.unique("grouping"), INTEGER, carrier_of(INTEGER))
            self._bits[text] = Bits(fresh, keys)
        return self._bits[text].column.name

    def _column(self, node: exp.Column) -> exp.Expr:
        if node.name in self._given:
            return self._given[node.name].node.copy()
        if node.name not in self._names:
            return node
        if not self._is_determined(node.name):
            raise refuse(f"{node.name} beside GROUP BY, of which it is no key,")
        # one more key that the others determine changes no group
        return column(self.add_key(Expression(node)).name).node

    def _is_determined(self, name: str) -> bool:
        """Whether all rows of a group have the same value in the column: a key of its table is grouped by."""
        if name in self.determined:
            return True
        grouped = {key.expression.column for key in self._keys.values()} - {None}
        names = frozenset(name for name in grouped if name is not None)
        scans = (part for part in self._pushdown.operator.walk() if isinstance(part, Scan))
        return any(name in scan.names and is_unique(scan, names & scan.names) for scan in scans)

    def over_no_rows(self, expression: Expression) -> Expression:
        """The expression where all columns of the groups may be null because there is no row."""
        calls = [call for call in self.calls.all if call.column.name in expression.columns]
        for call in calls:
            require_known_over_no_rows(call)
        zero = {
            call.column.name: Expression(
                exp.Coalesce(this=column(call.column.name).node, expressions=[exp.Literal.number(0)])
            )
            for call in calls
            if is_zero_over_no_rows(call.expression.node)
        }
        return expression.substitute(zero)


def _text(node: exp.Expr) -> str:
    return to_sql(node.unnest())
