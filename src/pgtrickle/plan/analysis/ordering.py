"""DISTINCT, DISTINCT ON, ORDER BY with LIMIT and OFFSET."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from pgtrickle.plan.analysis.block import Block
from pgtrickle.plan.analysis.columns import as_column, as_columns, result_column
from pgtrickle.plan.analysis.context import Context
from pgtrickle.plan.analysis.correlation import correlation_keys
from pgtrickle.plan.analysis.row_order import OrderItem
from pgtrickle.plan.analysis.scan_pushdown import ScanPushdown
from pgtrickle.plan.expressions import Expression, column, is_null
from pgtrickle.plan.expressions.constants import constant_number
from pgtrickle.plan.operators import Distinct, Operator, Ordering, Project, Top
from pgtrickle.plan.refusals import refuse, refuse_correlation


@dataclass(frozen=True, slots=True)
class RowLimit:
    """LIMIT and OFFSET; no limit is None."""

    limit: int | None
    offset: int
    has_ties: bool

    @property
    def is_nothing(self) -> bool:
        """Whether all rows stay."""
        return self.limit is None and not self.offset


def cut_of(node: exp.Expr) -> RowLimit:
    """The LIMIT, OFFSET and FETCH of a query."""
    limit, offset = node.args.get("limit"), node.args.get("offset")
    has_ties = False
    count: exp.Expr | None = None
    if isinstance(limit, exp.Fetch):
        options = limit.args.get("limit_options")
        has_ties = bool(options and options.args.get("with_ties"))
        count = limit.args.get("count")
    elif limit is not None:
        count = limit.expression
    skipped = _number(offset.expression if offset else None, "OFFSET")
    return RowLimit(_number(count, "LIMIT"), skipped or 0, has_ties)


def _number(node: exp.Expr | None, what: str) -> int | None:
    if node is None or is_null(node) or (isinstance(node, exp.Var) and node.name.upper() == "ALL"):
        return None
    count = _folded(node)
    if count is None or count < 0:
        raise refuse(f"{what} by an expression")
    return count


def _folded(node: exp.Expr) -> int | None:
    """The value of a sum, difference or product of whole numbers; None of anything else."""
    digits = constant_number(node)
    if digits is not None:
        return int(digits) if digits.lstrip("-").isdigit() else None
    bare = node.unnest()
    if isinstance(bare, exp.Cast) and bare.to.is_type("int", "bigint"):
        return _folded(bare.this)
    if not isinstance(bare, (exp.Add, exp.Sub, exp.Mul)):
        return None
    left, right = _folded(bare.left), _folded(bare.right)
    if left is None or right is None:
        return None
    if isinstance(bare, exp.Mul):
        return left * right
    return left + right if isinstance(bare, exp.Add) else left - right


def order_item(item: exp.Expr, value: Expression) -> OrderItem:
    """An item of ORDER BY, its expression resolved."""
    if not isinstance(item, exp.Ordered) or item.args.get("with_fill"):
        raise refuse("ORDER BY with an operator")
    is_descending = bool(item.args.get("desc"))
    return OrderItem(value, is_descending, bool(item.args.get("nulls_first")))


def cut_rows(block: Block, own: list[OrderItem], cut: RowLimit, context: Context) -> Block:
    """The rows that LIMIT and OFFSET leave of a block whose order is known; `own` is its ORDER BY."""
    if cut.is_nothing:
        return block
    block.order.require("LIMIT or OFFSET without ORDER BY")
    # rows are ties if they are equal by the query's own order
    return _top(block, own if cut.has_ties else list(block.order.items), cut, context)


def _top(block: Block, order: list[OrderItem], cut: RowLimit, context: Context) -> Block:
    """The rows of the block that LIMIT and OFFSET leave, for each row of a surrounding query."""
    found = correlation_keys(block.operator, block.correlated, "LIMIT", context)
    operator, orderings = _orderings(found.operator, order, context)
    if cut.has_ties and not orderings:
        # without an order all rows are equal to the last one
        cut = RowLimit(None if cut.limit else cut.limit, cut.offset, has_ties=False)
    limited = Top(operator, found.names, orderings, cut.limit, cut.offset, cut.has_ties)
    return replace(block, operator=limited, correlated=found.conditions)


def first_of_each(block: Block, on: list[Expression], order: list[OrderItem], context: Context) -> Block:
    """DISTINCT ON: the first row of each combination of the expressions."""
    found = correlation_keys(block.operator, block.correlated, "DISTINCT ON", context)
    own = tuple(e for e in on if e.columns & found.operator.names or not e.columns)
    operator, names = as_columns(found.operator, own, context)
    operator, orderings = _orderings(operator, order, context)
    partition = tuple(dict.fromkeys([*found.names, *names]))
    return replace(block, operator=Top(operator, partition, orderings, 1), correlated=found.conditions)


def _orderings(
    operator: Operator, order: list[OrderItem], context: Context
) -> tuple[Operator, tuple[Ordering, ...]]:
    found = []
    for item in order:
        if not item.value.columns or not item.value.columns & operator.names:
            # the same for all rows of a surrounding row
            continue
        operator, name = as_column(operator, item.value, context)
        found.append(Ordering(name, item.is_descending, item.has_nulls_first))
    return operator, tuple(found)


def distinct(block: Block, context: Context) -> Block:
    """Each row of the block once, for each row of a surrounding query."""
    found = correlation_keys(block.operator, block.correlated, "DISTINCT", context)
    shown = [n for n, (_, e) in enumerate(block.outputs) if e.columns <= found.operator.names]
    for _, expression in block.outputs:
        if not expression.columns <= found.operator.names and expression.columns & found.operator.names:
            raise refuse_correlation(f"DISTINCT over {expression}")
    if not shown and not found.names:
        # all rows are equal, whatever the surrounding query's columns are
        return Block(Top(found.operator, (), (), 1), block.outputs, found.conditions)
    own = replace(block, operator=found.operator, outputs=tuple(block.outputs[n] for n in shown))
    project, renamed = project_with(own, found.names, context)
    outputs = list(block.outputs)
    for number, made in zip(shown, project.columns, strict=False):
        outputs[number] = (outputs[number][0], column(made.name))
    return Block(Distinct(project), tuple(outputs), found.renamed_conditions(renamed))


def project_outputs(block: Block, context: Context) -> Project:
    """The block's outputs as columns of an operator, in their order."""
    return project_with(block, (), context)[0]


def project_with(block: Block, names: tuple[str, ...], context: Context) -> tuple[Project, dict[str, str]]:
    """The outputs and then these columns as columns of an operator, and what the latter are called."""
    pushdown = ScanPushdown(context, block.operator)
    pushed = []
    for _, expression in block.outputs:
        if not expression.columns <= block.operator.names:
            raise refuse_correlation(f"{expression}, which reads a surrounding query,")
        pushed.append(pushdown.for_spark(expression))
    wishes = [name for name, _ in block.outputs] + list(names)
    values = [*pushed, *(column(name) for name in names)]
    pairs = zip(wishes, values, strict=True)
    columns = [result_column(context, wish, value, pushdown.operator) for wish, value in pairs]
    renamed = {name: c.name for name, c in zip(names, columns[len(pushed) :], strict=True)}
    return Project(pushdown.operator, tuple(columns), tuple(values)), renamed
