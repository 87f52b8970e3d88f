"""References to a whole row: `t` where `t` is a table, as one value of all its columns.

The row of a table or view has its type; the row of a subquery is a record that has its names. Where a join
pads a relation with nulls, its row is null, and not a row of nulls.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlglot import exp

from pgtrickle.model.names import quoted
from pgtrickle.plan.analysis.scalars import null_unless
from pgtrickle.plan.analysis.scope import WHOLE_ROW
from pgtrickle.plan.expressions import Expression, column
from pgtrickle.plan.expressions.syntax import WordedCall


def whole_row_names(tree: exp.Expr) -> set[str]:
    """The relations whose whole row a query refers to somewhere, by name."""
    return {
        str(part.args["table"].name)
        for part in tree.find_all(exp.Column)
        if isinstance(part.this, exp.Star) and part.args.get("table")
    }


def row_of_type(columns: Iterable[tuple[str, Expression]], type_name: str) -> Expression:
    """The columns as one value of a composite type."""
    values = [expression.node.copy() for _, expression in columns]
    words = ["", *([","] * (len(values) - 1)), ""] if values else [""]
    row = WordedCall(call="ROW", words=words, expressions=values)
    return Expression(exp.Cast(this=row, to=exp.DataType.build(type_name, dialect="postgres", udt=True)))


def record_of(columns: Iterable[tuple[str, Expression]]) -> Expression:
    """The columns as a record that has their names."""
    named = list(columns)
    words = ["SELECT r FROM (SELECT"]
    for number, (name, _) in enumerate(named):
        is_last = number == len(named) - 1
        words.append(f"AS {quoted(name)}" + (") AS r" if is_last else ","))
    if not named:
        words = ["SELECT r FROM (SELECT) AS r"]
    values = [expression.node.copy() for _, expression in named]
    return Expression(WordedCall(call="", words=words, expressions=values))


def with_whole_row(
    offered: Mapping[str, Expression], type_name: str | None, is_there: Expression | None = None
) -> dict[str, Expression]:
    """The columns of a relation and its whole row, null unless `is_there`."""
    row = row_of_type(offered.items(), type_name) if type_name else record_of(offered.items())
    return {**offered, WHOLE_ROW: null_unless(is_there, row)}


def padded_row(row: Expression, known: Mapping[Expression, Expression], is_match: str) -> Expression:
    """The whole row of a relation that a join pads, over its columns above the join."""
    if isinstance(row.node, exp.Case):
        # it is null already where an inner join padded it, and the column that says so is padded here
        return row

    def replace(node: exp.Expr) -> exp.Expr:
        if not isinstance(node.parent, WordedCall) or node.arg_key != "expressions":
            return node
        found = known[Expression(node)].node.copy()
        return found if isinstance(found, exp.Column) else exp.Paren(this=found)

    return null_unless(column(is_match), Expression(row.node.copy().transform(replace)))
