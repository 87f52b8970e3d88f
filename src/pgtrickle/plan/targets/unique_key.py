"""Which columns of a joined result are unique together, from the keys of its sources."""

from __future__ import annotations

from collections.abc import Iterator

from pgtrickle.plan.operators import Filter, Join, Mark, Operator, Scan, Threshold
from pgtrickle.plan.rules import RULES


def unique_columns(op: Operator) -> tuple[str, ...] | None:
    """Columns of the operator that no two of its rows share; None if none are known."""
    kept = list(_spine(op))
    if any(not isinstance(part, (Scan, Filter, Join, Mark, Threshold)) for part in kept):
        return None
    scans = [part for part in kept if isinstance(part, Scan)]
    keys = {scan.alias: _key(scan) for scan in scans}
    if any(key is None for key in keys.values()):
        return None
    equal = [pair for part in kept if isinstance(part, Join) for pair in part.on]
    chosen = list(scans)
    for scan in reversed(scans):
        fewer = [other for other in chosen if other is not scan]
        if fewer and _determined_scans(fewer, scans, equal) == set(scans):
            chosen = fewer
    return tuple(name for scan in chosen for name in _key(scan) or ())


def _spine(op: Operator) -> Iterator[Operator]:
    """The operators whose rows are in the result; the right of a mark is only asked."""
    yield op
    for way in RULES[type(op)].open_children(op):
        yield from _spine(op.children[way.child])


def _key(scan: Scan) -> tuple[str, ...] | None:
    given = {column.name: name for column, name in zip(scan.source.columns, scan.given, strict=True)}
    for key in scan.source.keys:
        return tuple(given[name] for name in key)
    return None


def _determined_scans(chosen: list[Scan], scans: list[Scan], equal: list[tuple[str, str]]) -> set[Scan]:
    """The scans of which one row at most goes with a row of each of the chosen ones."""
    known = set(chosen)
    while True:
        columns = {name for scan in known for name in (*scan.given, *scan.names)}
        columns |= {b for a, b in equal if a in columns} | {a for a, b in equal if b in columns}
        more = {scan for scan in scans if scan not in known and set(_key(scan) or ()) <= columns}
        if not more:
            return known
        known |= more
