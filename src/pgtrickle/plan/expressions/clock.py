"""Functions whose value changes as time passes."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sqlglot import exp

from pgtrickle.plan.expressions.dialect import parse_or_none, to_sql
from pgtrickle.plan.expressions.expression import Expression
from pgtrickle.plan.expressions.syntax import WordedCall

CLOCK = "\x00clock\x00"
"""Stands in the SQL of a read for the time at the end of the window that is read.

No text and no name of a query contains it: PostgreSQL has no character with the code 0.
"""
_SHOWN = "⟨clock⟩"

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
    rf"\b(?:(?:age|{'|'.join(sorted(_NAMES))})(?=\()|current_(?:date|time|timestamp)\b|localtime(?:stamp)?\b)",
    re.IGNORECASE,
)
"""Words of a text that may read the clock."""


def clock_functions(queries: Iterable[str]) -> list[str]:
    """The calls that read the clock, as written; of a text we cannot parse, the words that may be one."""
    found: list[str] = []
    for query in queries:
        try:
            tree = parse_or_none(query)
        except RecursionError:
            tree = None
        if tree is None:
            found += _WORDS.findall(query)
        else:
            found += [to_sql(node) for node in tree.walk() if _reads_clock(node)]
    return list(dict.fromkeys(found))


def has_clock(expression: Expression | None) -> bool:
    """Whether the expression reads the clock."""
    return expression is not None and any(_reads_clock(node) for node in expression.node.walk())


def with_clock_marker(expression: Expression) -> Expression:
    """The expression with the marker CLOCK wherever it reads the clock."""

    def replace(node: exp.Expr) -> exp.Expr:
        if not _reads_clock(node):
            return node
        kind = _TYPES.get(type(node), "timestamptz")
        precision = node.args.get("this")
        typed = f"{kind}({to_sql(precision)})" if isinstance(precision, exp.Literal) else kind
        return exp.Var(this=f"({CLOCK}::{typed})")

    return Expression(expression.node.copy().transform(replace))


def _reads_clock(node: exp.Expr) -> bool:
    if isinstance(node, WordedCall) and any(map(_WORDS.search, node.args["words"])):
        # the defaults of the columns of JSON_TABLE are among its words
        return True
    if isinstance(node, exp.Anonymous) and node.name.lower() == "age":
        return len(node.expressions) == 1
    return (isinstance(node, exp.Anonymous) and node.name.lower() in _NAMES) or type(node) in _TYPES


def shown_with_clock(condition: str) -> str:
    """A condition as people read it."""
    return condition.replace(CLOCK, _SHOWN)


def has_age(condition: Expression) -> bool:
    """Whether the condition calls `age(x)`, which takes no other time than the clock's."""
    return any(isinstance(n, exp.Anonymous) and n.name.lower() == "age" for n in condition.node.walk())
