"""Which functions of a query give another answer as time passes."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from pgtrickle.model.errors import UnsupportedQuery
from pgtrickle.plan.analysis.query import parse
from pgtrickle.plan.dialect import written

_NODES = (
    exp.CurrentTimestamp,
    exp.CurrentDate,
    exp.CurrentTime,
    exp.CurrentDatetime,
    exp.Localtime,
    exp.Localtimestamp,
)
_NAMES = frozenset({"now", "transaction_timestamp", "statement_timestamp", "age"})


def clock_functions(queries: Iterable[str]) -> list[str]:
    """The calls that read the clock, as they are written; none of what our parser cannot read."""
    found: list[str] = []
    for query in queries:
        try:
            tree = parse(query)
        except UnsupportedQuery:
            continue
        for node in tree.walk():
            is_named = isinstance(node, exp.Anonymous) and node.name.lower() in _NAMES
            if is_named and node.name.lower() == "age" and len(node.expressions) > 1:
                continue
            if is_named or isinstance(node, _NODES):
                found.append(written(node))
    return list(dict.fromkeys(found))
