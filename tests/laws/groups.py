"""The oracle for operators that look at several rows at once, or that make rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from sqlglot import exp

from pgtrickle.plan.operators import Aggregate, Ordering, Single, TableFunction, Top, Values, Window
from tests.laws.expressions import Named, is_true, meaning_of, parsed, value
from tests.laws.rows import Row, Rows, naming, positions

Weighted = list[tuple[Named, int]]
Place = tuple[tuple[bool, int], ...]


class MoreThanOneRow(Exception):
    """A subquery that is used as a value gave several rows."""


def grouped(op: Aggregate, rows: Rows) -> Rows:
    groups: dict[Row, Weighted] = defaultdict(list)
    named = naming(op.child)
    for row, weight in rows:
        known = named(row)
        groups[tuple(value(key.expression, known) for key in op.keys)].append((known, weight))
    if not op.keys:
        groups.setdefault((), [])
    calls = [parsed(call.expression.sql) for call in op.calls]
    return [((*key, *(aggregated(call, members) for call in calls)), 1) for key, members in groups.items()]


def aggregated(call: exp.Expr, rows: Weighted) -> Any:
    """The value of an aggregate, as PostgreSQL writes it, over the rows of a group."""
    if isinstance(call, exp.Filter):
        condition = meaning_of(call.expression.this)
        return aggregated(call.this, [(row, w) for row, w in rows if condition(row) is True])
    if isinstance(call.this, exp.Star):
        return sum(weight for _, weight in rows)
    is_distinct = isinstance(call.this, exp.Distinct)
    operand = meaning_of(call.this.expressions[0] if is_distinct else call.this)
    present = [(v, weight) for v, weight in ((operand(row), w) for row, w in rows) if v is not None]
    if is_distinct:
        present = [(v, 1) for v in {v for v, _ in present}]
    if isinstance(call, exp.Count):
        return sum(weight for _, weight in present)
    return _COMBINED[type(call)](present) if present else None


_COMBINED: dict[type[exp.Expr], Callable[[list[tuple[Any, int]]], Any]] = {
    exp.Sum: lambda present: sum(v * w for v, w in present),
    exp.Min: lambda present: min(v for v, _ in present),
    exp.Max: lambda present: max(v for v, _ in present),
    exp.LogicalAnd: lambda present: all(v for v, _ in present),
    exp.LogicalOr: lambda present: any(v for v, _ in present),
}


def single(op: Single, rows: Rows) -> Rows:
    counts: Counter[Row] = Counter()
    places = positions(op, op.keys)
    for row, weight in rows:
        counts[tuple(row[i] for i in places)] += weight
    if any(count > 1 for count in counts.values()):
        raise MoreThanOneRow
    return rows


def topmost(op: Top, rows: Rows) -> Rows:
    parts: dict[Row, list[Row]] = defaultdict(list)
    places = positions(op, op.partition)
    for row, weight in rows:
        parts[tuple(row[i] for i in places)] += [row] * weight
    orders = list(zip(op.order, positions(op, [o.column for o in op.order]), strict=True))

    def place(row: Row) -> Place:
        return tuple(_place(row[i], o.is_descending, o.has_nulls_first) for o, i in orders)

    for members in parts.values():
        ordered = sorted(members, key=place)
        end = len(ordered) if op.limit is None else op.offset + op.limit
        kept = ordered[op.offset : end]
        if op.has_ties and kept:
            kept += [row for row in ordered[end:] if place(row) == place(kept[-1])]
        yield from ((row, 1) for row in kept)


def _place(found: Any, is_descending: bool, has_nulls_first: bool) -> tuple[bool, int]:
    if found is None:
        return not has_nulls_first, 0
    return has_nulls_first, -found if is_descending else found


def ordered_by(order: Iterable[Ordering]) -> str:
    """An ORDER BY clause, for the calls of windows."""
    directions = {True: "desc", False: "asc"}
    ends = {True: "nulls first", False: "nulls last"}
    parts = [f'"{o.column}" {directions[o.is_descending]} {ends[o.has_nulls_first]}' for o in order]
    return f"order by {', '.join(parts)}" if parts else ""


def windowed(op: Window, rows: Rows) -> Rows:
    copies = [row for row, weight in rows for _ in range(weight)]
    known = [naming(op.child)(row) for row in copies]
    values = [_over(parsed(call.expression.sql), known) for call in op.calls]
    return [((*row, *(column[n] for column in values)), 1) for n, row in enumerate(copies)]


def _over(call: exp.Expr, rows: list[dict[str, Any]]) -> list[Any]:
    """The value of a window function for each of the rows."""
    partition = [meaning_of(part) for part in call.args.get("partition_by") or ()]
    order = call.args.get("order")
    specs = [(meaning_of(o.this), o.args.get("desc"), o.args["nulls_first"]) for o in order or ()]
    keys = [tuple(part(row) for part in partition) for row in rows]
    places = [tuple(_place(of(row), bool(d), bool(n)) for of, d, n in specs) for row in rows]
    found = []
    for here in range(len(rows)):
        among = [n for n in range(len(rows)) if keys[n] == keys[here]]
        before = [n for n in among if places[n] < places[here]]
        peers = [n for n in among if places[n] == places[here]]
        match call.this:
            case exp.Anonymous(this="rank") | exp.Rank():
                found.append(len(before) + 1)
            case exp.Anonymous(this="row_number") | exp.RowNumber():
                found.append(len(before) + 1 + peers.index(here))
            case function:
                found.append(aggregated(function, [(rows[n], 1) for n in before + peers]))
    return found


def made(op: TableFunction, rows: Rows) -> Rows:
    """The only function here is generate_series."""
    series = parsed(op.call.sql)
    start, end = meaning_of(series.args["start"]), meaning_of(series.args["end"])
    named, beside = naming(op.child), naming(op)

    def is_counted(one: Row) -> bool:
        return op.condition is None or is_true(op.condition, beside(one))

    for row, weight in rows:
        known = named(row)
        first, last = start(known), end(known)
        numbers = [] if first is None or last is None else list(range(first, last + 1))
        rowset: list[Row] = [(n, i + 1) if op.has_ordinality else (n,) for i, n in enumerate(numbers)]
        found = [row + one for one in rowset if is_counted(row + one)]
        if op.keeps_child and not found:
            found = [row + (None,) * len(op.made)]
        yield from ((one, weight) for one in found)


def listed(op: Values) -> Rows:
    """The rows of a VALUES list."""
    if not op.columns:
        return [((), 1)]
    return [
        (tuple(meaning_of(item)({}) for item in row.expressions), 1) for row in parsed(op.query).expressions
    ]
