"""Functions that give another answer as time passes, and where they can be followed.

A condition of a scan may compare its columns with the clock: rows enter and leave as time passes.
The condition is then evaluated at both ends of the window, each with the clock of that end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from sqlglot import exp

from pgtrickle.plan.analysis.context import refuse
from pgtrickle.plan.dialect import parsed, written
from pgtrickle.plan.expressions import Expression
from pgtrickle.plan.operators import (
    Aggregate,
    Filter,
    Join,
    Mark,
    Operator,
    OuterJoin,
    Project,
    Scan,
    TableFunction,
    Values,
    Window,
)

CLOCK = "⟨clock⟩"
"""Stands in the SQL of a read for the time at the end of the window that is read."""

_TYPES: dict[type[exp.Expr], str] = {
    exp.CurrentTimestamp: "timestamptz",
    exp.CurrentDate: "date",
    exp.CurrentTime: "timetz",
    exp.CurrentDatetime: "timestamp",
    exp.Localtime: "time",
    exp.Localtimestamp: "timestamp",
}
_NAMES = frozenset({"now", "transaction_timestamp", "statement_timestamp"})
_WORDS = re.compile(
    rf"\b(?:(?:{'|'.join(sorted(_NAMES))})(?=\()|current_(?:date|time|timestamp)\b|localtime(?:stamp)?\b)",
    re.I,
)


def clock_functions(queries: Iterable[str]) -> list[str]:
    """The calls that read the clock, as written; words that may be one where our parser cannot read."""
    found: list[str] = []
    for query in queries:
        try:
            tree = parsed(query)
        except RecursionError:
            tree = None
        if tree is None:
            found += _WORDS.findall(query)
        else:
            found += [written(node) for node in tree.walk() if _reads_clock(node)]
    return list(dict.fromkeys(found))


def has_clock(expression: Expression | None) -> bool:
    """Whether the expression reads the clock."""
    return expression is not None and any(_reads_clock(node) for node in expression.node.walk())


def clocked(expression: Expression) -> Expression:
    """The expression with the clock's sign in the place of the clock."""

    def replace(node: exp.Expr) -> exp.Expr:
        if not _reads_clock(node):
            return node
        kind = _TYPES.get(type(node), "timestamptz")
        precision = node.args.get("this")
        typed = f"{kind}({written(precision)})" if isinstance(precision, exp.Literal) else kind
        return exp.Var(this=f"({CLOCK}::{typed})")

    return Expression(expression.node.copy().transform(replace))


def require_followable(op: Operator, outputs: Iterable[Expression]) -> None:
    """Refuse the clock anywhere but in the condition of a scan."""
    found = [e for e in outputs if has_clock(e)] + [e for e in _expressions(op) if has_clock(e)]
    for expression in found:
        raise refuse(f"{expression}, which moves with the clock,")
    for part in op.walk():
        if isinstance(part, Values) and clock_functions([part.query]):
            raise refuse(f"{part.query}, which moves with the clock,")


def _reads_clock(node: exp.Expr) -> bool:
    if isinstance(node, exp.Anonymous) and node.name.lower() == "age":
        return len(node.expressions) == 1
    return (isinstance(node, exp.Anonymous) and node.name.lower() in _NAMES) or type(node) in _TYPES


def _expressions(op: Operator) -> Iterator[Expression]:
    for part in op.walk():
        match part:
            case Scan():
                yield from (output.expression for output in part.outputs)
                if part.condition is not None and _has_age(part.condition):
                    yield part.condition
            case Filter():
                yield part.condition
            case Project():
                yield from part.expressions
            case Join() | OuterJoin() | Mark():
                yield from (part.condition,) if part.condition is not None else ()
            case Aggregate():
                yield from (key.expression for key in part.keys)
                yield from (call.expression for call in part.calls)
            case Window():
                yield from (call.expression for call in part.calls)
            case TableFunction():
                yield part.call
                yield from [part.condition] if part.condition else []
            case _:
                pass


def _has_age(condition: Expression) -> bool:
    """`age(x)` reads the clock inside: it has no place for another time."""
    return any(isinstance(n, exp.Anonymous) and n.name.lower() == "age" for n in condition.node.walk())
