"""What may never end, below something that PostgreSQL answers without reading all of it.

PostgreSQL stops a recursion, and a set-returning function in a select list, as soon as LIMIT, EXISTS, IN or
ANY has enough rows. Whatever we read of such a query by itself (a part, a state, either end of a window) has
no such stop, so it might run for ever. Therefore the query is kept whole, with its LIMIT: PostgreSQL
recomputes it. What surely ends, and what PostgreSQL too has to read to its end, is followed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from sqlglot import exp

from pgtrickle.plan.analysis.context import refuse
from pgtrickle.plan.expressions import Expression, conjuncts
from pgtrickle.plan.lowering.constants import constant_number
from pgtrickle.plan.operators import (
    Aggregate,
    Distinct,
    Filter,
    Itself,
    Join,
    Mark,
    Operator,
    Project,
    Recursive,
    TableFunction,
    Top,
    Window,
)

_MOST_STEPS: Final = 100_000
"""A series between two constants that has no more steps than this is short enough to be read whole."""
_CYCLE_PATH: Final = "path of the cycle"
_BOUNDED: Final = frozenset(
    {
        "generate_subscripts",
        "json_array_elements",
        "json_array_elements_text",
        "json_each",
        "json_each_text",
        "json_object_keys",
        "json_populate_recordset",
        "json_to_recordset",
        "jsonb_array_elements",
        "jsonb_array_elements_text",
        "jsonb_each",
        "jsonb_each_text",
        "jsonb_object_keys",
        "jsonb_path_query",
        "jsonb_populate_recordset",
        "jsonb_to_recordset",
        "regexp_matches",
        "regexp_split_to_table",
        "string_to_table",
        "unnest",
    }
)
"""Functions that return no more rows than their argument has parts."""


def require_ends(op: Operator, *, is_cut: bool = False, is_probed: bool = False) -> None:
    """Refuse a tree that reads more than PostgreSQL would of something that may never end.

    `is_cut`: a LIMIT above may stop reading. `is_probed`: EXISTS, IN or ANY may, and for EXISTS PostgreSQL
    drops an ORDER BY, DISTINCT or GROUP BY below it.
    """
    if is_cut or is_probed:
        _require_end_of(op)
    match op:
        case Mark():
            require_ends(op.left, is_cut=is_cut, is_probed=is_probed)
            require_ends(op.right, is_probed=True)
            return
        case Top():
            # sorting reads everything, whatever is shown of it
            is_cut = is_cut or not op.order
        case Window():
            is_cut = is_probed = False
        case Aggregate():
            is_cut = False
            is_probed = is_probed and not op.calls
        case Distinct():
            is_cut = False
    for child in op.children:
        require_ends(child, is_cut=is_cut, is_probed=is_probed)


def _require_end_of(op: Operator) -> None:
    if isinstance(op, Recursive) and not _surely_ends(op):
        raise refuse("a recursion that may never end, below LIMIT, EXISTS, IN or ANY,")
    if isinstance(op, TableFunction) and not is_bounded(op.call.node):
        raise refuse(f"{op.call}, which may never end, below LIMIT, EXISTS, IN or ANY,")


def _surely_ends(recursion: Recursive) -> bool:
    """Whether the recursion makes finitely many rows, whatever the tables hold."""
    if any(column.name.startswith(_CYCLE_PATH) for column in recursion.columns):
        return True
    outputs = _outputs(recursion)
    if not recursion.is_all and all(_is_copied(output, recursion.step) for output in outputs):
        # only values that are there already, and no row twice
        return True
    itself = next(part for part in recursion.step.walk() if _is_itself(part, recursion))
    bounded = {name for part in _conditions(recursion.step) for name in _below_constant(part)}
    pairs = zip(itself.columns, outputs, strict=True)
    return any(own.name in bounded and _is_raised(output, own.name) for own, output in pairs)


def _is_itself(part: Operator, recursion: Recursive) -> bool:
    return isinstance(part, Itself) and part.name == recursion.name


def _outputs(recursion: Recursive) -> list[Expression]:
    """What each column of a step is made of, over what the step reads."""
    made: dict[str, Expression] = {}
    for part in recursion.step.walk():
        if isinstance(part, Project):
            made |= {c.name: e for c, e in zip(part.columns, part.expressions, strict=True)}
    return [_resolved(Expression(_column(c.name)), made) for c in recursion.step.columns]


def _column(name: str) -> exp.Expr:
    return exp.Column(this=exp.to_identifier(name, quoted=True))


def _resolved(expression: Expression, made: Mapping[str, Expression]) -> Expression:
    while expression.columns & made.keys():
        name = expression.column
        # a projection that gives a column on under its own name says nothing more of it
        if name is not None and made[name].column == name:
            return expression
        expression = expression.substitute({n: made[n] for n in expression.columns & made.keys()})
    return expression


def _is_copied(output: Expression, step: Operator) -> bool:
    """Whether the value comes from a table, from the step before, or is a constant."""
    if not output.columns:
        return True
    node = output.node.unnest()
    while isinstance(node, exp.Cast):
        node = node.this.unnest()
    if not isinstance(node, exp.Column):
        return False
    makers = (p for p in step.walk() if isinstance(p, (TableFunction, Aggregate, Window)))
    reads_itself = (p for p in makers if any(isinstance(below, Itself) for below in p.walk()))
    return not any(node.name in p.names and not _is_given(node.name, p) for p in reads_itself)


def _is_given(name: str, op: Operator) -> bool:
    return any(name in child.names for child in op.children)


def _conditions(op: Operator) -> Iterator[Expression]:
    """The conditions that every row of a step has to satisfy."""
    match op:
        case Project():
            yield from _conditions(op.child)
        case Filter():
            yield from conjuncts(op.condition)
            yield from _conditions(op.child)
        case Join():
            if op.condition is not None:
                yield from conjuncts(op.condition)
            yield from _conditions(op.left)
            yield from _conditions(op.right)


def _below_constant(condition: Expression) -> Iterator[str]:
    """The column that the condition keeps below a constant number."""
    node = condition.node.unnest()
    if isinstance(node, (exp.LT, exp.LTE)):
        column, bound = node.left.unnest(), node.right
    elif isinstance(node, (exp.GT, exp.GTE)):
        column, bound = node.right.unnest(), node.left
    else:
        return
    if isinstance(column, exp.Column) and constant_number(bound) is not None:
        yield column.name


def _is_raised(output: Expression, name: str) -> bool:
    """Whether the value is that of the column before, plus a whole number above zero."""
    node = output.node.unnest()
    if not isinstance(node, exp.Add):
        return False
    sides = (node.left.unnest(), node.right.unnest())
    columns = [side.name for side in sides if isinstance(side, exp.Column)]
    numbers = [digits for side in sides if (digits := constant_number(side)) is not None]
    return columns == [name] and len(numbers) == 1 and numbers[0].isdigit() and int(numbers[0]) > 0


def is_bounded(call: exp.Expr) -> bool:
    """Whether a set-returning function surely returns few rows: for each part of a value at most one."""
    node = call.unnest()
    if isinstance(node, exp.Alias):
        return is_bounded(node.this)
    if isinstance(node, exp.Select):
        # a call that is taken apart into the fields of its rows
        source = node.args["from_"].this
        return not source.args.get("db") and is_bounded(source.this)
    if isinstance(node, exp.Anonymous):
        match node.name.lower():
            case "rows from":
                return all(is_bounded(part) for part in node.expressions)
            case "generate_series":
                return _is_short([constant_number(given) for given in node.expressions])
            case name:
                return name in _BOUNDED
    # functions of a schema are anybody's, those that the parser knows are PostgreSQL's
    return not isinstance(node, exp.Dot)


def _is_short(given: list[str | None]) -> bool:
    """Whether a series from one number to another has few steps."""
    numbers = [float(digits) for digits in given if digits is not None]
    if len(numbers) < len(given) or len(numbers) < 2:
        return False
    first, last, step = (*numbers, 1.0)[:3]
    return step != 0 and abs((last - first) / step) <= _MOST_STEPS
