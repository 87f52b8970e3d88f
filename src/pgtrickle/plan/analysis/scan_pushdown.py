"""Moves what depends on one source alone into that source's scan, where PostgreSQL evaluates it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from sqlglot import exp

from pgtrickle.model.carrier import Carrier
from pgtrickle.model.names import quoted
from pgtrickle.model.source import PgType, SourceKind
from pgtrickle.plan.analysis.context import Context
from pgtrickle.plan.analysis.function_kinds import require_no_sets
from pgtrickle.plan.carriers import MAX_SCALE, carrier_of, decimal, verbatim
from pgtrickle.plan.expressions import Expression, column
from pgtrickle.plan.expressions.nulls import is_strict
from pgtrickle.plan.expressions.numerics import Numeric, numeric_of
from pgtrickle.plan.operators import Column, Operator, Project, Scan, ScanColumn
from pgtrickle.plan.rules import RULES
from pgtrickle.plan.rules.project import over_child
from pgtrickle.plan.rules.scan import over_source, over_source_columns

Carrying = Callable[[PgType], Carrier]

_TOTAL = (
    exp.Column, exp.Paren, exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE,
    exp.Is, exp.Case, exp.If, exp.Coalesce, exp.DPipe, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Like, exp.In,
    exp.Between, exp.Any, exp.All, exp.Array, exp.Tuple,
)  # fmt: skip

_PIECES = (
    exp.If, exp.Ordered, exp.Order, exp.Where, exp.Tuple, exp.Any, exp.All, exp.Distinct, exp.Slice,
)  # fmt: skip
"""Nodes that are no values by themselves."""

_TOTAL_FUNCTIONS = frozenset(
    {"lower", "upper", "length", "btrim", "ltrim", "rtrim", "concat", "abs", "date_trunc"}
)


def is_total(node: exp.Expr) -> bool:
    """Whether evaluating the expression can never raise an error on some rows only."""
    if not any(isinstance(part, exp.Column) for part in node.walk()):
        return True
    if isinstance(node, exp.Cast):
        is_known = node.to.is_type("text", "varchar")
    elif isinstance(node, exp.Anonymous):
        is_known = node.name.lower() in _TOTAL_FUNCTIONS
    else:
        is_known = isinstance(node, _TOTAL)
    return is_known and all(is_total(part) for part in node.iter_expressions())


class ScanPushdown:
    """Rewrites expressions over an operator so that single-source parts become scan columns."""

    def __init__(self, context: Context, operator: Operator) -> None:
        self._context = context
        self.operator = operator

    def scan_of(self, expression: Expression) -> Scan | None:
        """The one scan that can evaluate the expression, if there is one.

        Where a join may pad the scan with nulls, only what is null for nulls can move below it.
        """
        for scan, is_padded in _scans(self.operator):
            if expression.columns and expression.columns <= scan.names:
                is_safe = not is_padded or is_strict(expression.node, scan.names, scan.text_columns)
                return scan if is_safe else None
        return None

    def prefetch_types(self, expressions: Iterable[Expression]) -> None:
        """Ask at once for the types of what will be moved into the scans."""
        asked: dict[str, list[str]] = {}
        for expression in expressions:
            scan = self.scan_of(expression) if expression.column is None else None
            if scan is not None:
                text = over_source(scan, over_source_columns(scan, expression))
                asked.setdefault(_rows(scan), []).append(text)
        for rows, texts in asked.items():
            self._context.prefetch_types(rows, texts)

    def push(self, expression: Expression) -> Expression:
        """The expression with its single-source parts moved into the scans."""
        return Expression(self._visit(expression.node.copy(), is_guarded=False, is_computed=False))

    def push_numbers(self, expression: Expression) -> Expression:
        """Like push, but numbers come in the form that Spark computes with."""
        return Expression(self._visit(expression.node.copy(), is_guarded=False, is_computed=True))

    def for_spark(self, expression: Expression) -> Expression:
        """The expression as Spark gets it: a column if it can be one, else numbers to compute with."""
        scan = next((scan for scan, is_padded in _scans(self.operator) if not is_padded), None)
        if not expression.columns and scan is not None:
            # a constant is best known to PostgreSQL, whatever its type
            return column(self._column(scan, expression, carrier_of))
        pushed = self.push(expression)
        return pushed if pushed.column is not None else self.push_numbers(expression)

    def push_output(self, expression: Expression, *, has_joins: bool) -> Expression:
        """An output of the query: evaluated in the scan if that is safe, else left to the apply."""
        scan = self.scan_of(expression)
        if scan is None:
            return self._verbatim_numbers(expression)
        if expression.column is not None or (has_joins and not is_total(expression.node)):
            return self._verbatim_numbers(expression)
        return column(self._column(scan, expression, verbatim))

    def _verbatim_numbers(self, expression: Expression) -> Expression:
        """Numbers that are only shown keep their trailing zeros, and `bpchar` its spaces."""
        shown: dict[str, Expression] = {}
        for name in expression.columns:
            scan = self.scan_of(column(name))
            if scan and _has_several_forms(scan.column(name).type):
                shown[name] = column(self._column(scan, column(name), verbatim))
        return expression.substitute(shown)

    def _visit(self, node: exp.Expr, *, is_guarded: bool, is_computed: bool) -> exp.Expr:
        expression = Expression(node)
        if not expression.columns:
            return node
        scan = self.scan_of(expression) if not isinstance(node, _PIECES) else None
        if scan is not None and (not is_guarded or is_total(node)):
            name = expression.column
            if name is None or is_computed:
                maker = self._computing_form(scan, expression) if is_computed else carrier_of
                name = self._column(scan, expression, maker)
            return column(name).node
        guarded = is_guarded or isinstance(node, (exp.Case, exp.Coalesce, exp.And, exp.Or))
        # the name of a function means another one without its schema
        parts = node.expression if isinstance(node, exp.Dot) else node
        for child in list(parts.iter_expressions()):
            child.replace(self._visit(child, is_guarded=guarded, is_computed=is_computed))
        return node

    def _computing_form(self, scan: Scan, expression: Expression) -> Carrying:
        number = numeric_of(over_source_columns(scan, expression).node, lambda name: scan.column(name).type)
        return lambda pg_type: computing_carrier(pg_type, number)

    def _column(self, scan: Scan, expression: Expression, carrier: Carrying) -> str:
        """The name of the scan's column for this expression, made if it is not there yet."""
        require_no_sets(expression, self._context)
        raw_value = over_source_columns(scan, expression)
        name = expression.column
        pg_type = scan.column(name).type if name else self._type(scan, raw_value)
        wanted = carrier(pg_type)
        for output in scan.outputs:
            if output.expression == raw_value and output.column.carrier == wanted:
                return output.column.name
        fresh = Column(self._context.unique(f"{scan.alias}.{str(expression)[:40]}"), pg_type, wanted)
        wider = replace(scan, outputs=(*scan.outputs, ScanColumn(fresh, raw_value)))
        self.operator = _with_scan(self.operator, scan, wider)
        return fresh.name

    def _type(self, scan: Scan, value: Expression) -> PgType:
        return self._context.type(_rows(scan), over_source(scan, value))


def _has_several_forms(pg_type: PgType) -> bool:
    """Whether equal values are carried as one of them, and the type does not say which was written."""
    return pg_type.text == "bpchar" or (pg_type.base == "numeric" and pg_type.scale is None)


def _rows(scan: Scan) -> str:
    """What a scan's expressions are typed over."""
    if scan.source.kind is SourceKind.AUXILIARY:
        # it may not exist yet
        columns = (f"null::{c.type.text} as {quoted(c.name)}" for c in scan.source.columns)
        return f"(select {', '.join(columns)}) as t"
    return f"{scan.source.table.sql} as t"


def computing_carrier(pg_type: PgType, number: Numeric | None) -> Carrier:
    """The carrier for a value that Spark computes with."""
    if pg_type.base == "numeric" and number is not None and number.scale <= MAX_SCALE:
        return decimal(pg_type, number.scale, number.before + number.scale)
    return carrier_of(pg_type)


def _scans(operator: Operator) -> Iterator[tuple[Scan, bool]]:
    """The scans whose columns the operator passes on unchanged, and whether they may be padded."""
    if isinstance(operator, Scan):
        yield operator, False
        return
    for way in RULES[type(operator)].open_children(operator):
        for scan, is_padded in _scans(operator.children[way.child]):
            yield scan, is_padded or way.is_padded


def _with_scan(operator: Operator, old: Scan, new: Scan) -> Operator:
    """The operator with the scan replaced; what the new one has more passes through."""
    if operator is old:
        return new
    children = list(operator.children)
    ways = RULES[type(operator)].open_children(operator)
    for way in ways:
        children[way.child] = _with_scan(children[way.child], old, new)
    if isinstance(operator, Project) and ways:
        return over_child(operator, children[0])
    return operator.with_children(tuple(children)) if ways else operator
