"""The extrema of groups from an index by the key of the group and the value, without reading the group."""

from __future__ import annotations

from sqlglot import exp

from pgtrickle.model.names import quoted
from pgtrickle.plan.expressions import Expression
from pgtrickle.plan.expressions.clock import has_clock
from pgtrickle.plan.operators import Aggregate, Call, Operator, Project, Scan
from pgtrickle.plan.properties import origin
from pgtrickle.plan.rules.scan import over_source


def extrema_by_index(scanned: Aggregate) -> str | None:
    """The extrema of the groups whose keys `keys` has; None unless an index gives each of them.

    The columns are those of the aggregate. A group that has no row is returned with nulls.
    """
    scan = _only_scan(scanned.child)
    if scan is None or not scanned.keys or has_clock(scan.condition):
        return None
    keys = [_source_column(scanned.child, key.expression) for key in scanned.keys]
    values = [_extreme_column(scanned.child, call) for call in scanned.calls]
    known = [name for name in keys if name is not None]
    if len(known) < len(keys) or any(_is_collated(scan, name) for name in known):
        return None
    if not all(value is not None and _is_indexed(scan, known, value) for value in values):
        return None
    matches = [f"t.{quoted(name)} = k.k{number}" for number, name in enumerate(known, start=1)]
    if scan.condition is not None:
        matches.append(f"({over_source(scan, scan.condition)})")
    listed = [
        f"(k.k{number})::{key.column.type.text} as {quoted(key.column.name)}"
        for number, key in enumerate(scanned.keys, start=1)
    ]
    for call, value in zip(scanned.calls, values, strict=True):
        found = (
            f"select {call.function}(t.{quoted(value or '')}) from {scan.source.table.sql} as t"
            f" where {' and '.join(matches)}"
        )
        listed.append(f"({found}) as {quoted(call.column.name)}")
    return f"select {', '.join(listed)} from keys as k"


def _only_scan(op: Operator) -> Scan | None:
    """The scan whose rows, all of them and each once, the operator shows."""
    while not isinstance(op, Scan):
        if not isinstance(op, Project):
            return None
        op = op.child
    return op


def _extreme_column(op: Operator, call: Call) -> str | None:
    node = call.expression.node.unnest()
    if call.argument is None or not isinstance(node, (exp.Min, exp.Max)):
        return None
    argument = Expression(node.this)
    return _source_column(op, argument) if argument.column is not None else None


def _source_column(op: Operator, expression: Expression) -> str | None:
    """The column of the source that an expression over the operator is; None if it is computed."""
    found = origin(op, expression.column) if expression.column is not None else None
    if found is None:
        return None
    scan, name = found
    given = scan.expression(name).column
    return None if given is None else scan.source_column(given)


def _is_collated(scan: Scan, name: str) -> bool:
    """Whether keys that are given would be compared by another collation than the index has."""
    own = scan.source.column(name).type
    return own.collation is not None or not own.deterministic or own.equals != "="


def _is_indexed(scan: Scan, keys: list[str], value: str) -> bool:
    count = len(keys)
    return any(
        set(index[:count]) == set(keys) and index[count : count + 1] == (value,)
        for index in scan.source.indexes
    )
