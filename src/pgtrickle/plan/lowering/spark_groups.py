"""Groups of relations with two weights, as Spark SQL."""

from __future__ import annotations

from pgtrickle.plan.lowering.exactness import spark_expression, spark_name
from pgtrickle.plan.lowering.spark_text import both_ends, folded, names, union, value
from pgtrickle.plan.operators import (
    MORE_THAN_ONE_ROW,
    Aggregate,
    Call,
    Column,
    Distinct,
    SetKind,
    SetOperation,
    Single,
)


def aggregate(op: Aggregate, rows: str) -> str:
    """Groups as they were and as they are."""
    inner = op.child.columns
    keys = [value(k.expression, k.column, inner) for k in op.keys]
    listed = "".join(f"{sql} as {spark_name(k.column.name)}, " for sql, k in zip(keys, op.keys, strict=True))
    calls = "".join(
        f"{_call(call, inner, end)} as a{number}_{end}, "
        for number, call in enumerate(op.calls)
        for end in (0, 1)
    )
    group = f" group by {', '.join(keys)}" if keys else ""
    source = folded(inner, rows) if any(_is_of_set(call) for call in op.calls) else rows
    grouped = f"select {listed}{calls}sum(w0) as n0, sum(w1) as n1 from ({source}){group}"
    ends = [[(c.column.name, f"a{n}_{end}") for n, c in enumerate(op.calls)] for end in (0, 1)]
    is_there = ("n0 > 0", "n1 > 0") if keys else ("true", "true")
    made = ", ".join([spark_name(call.column.name) for call in op.calls] + ["w0", "w1"])
    where = " where n0 > 0 or n1 > 0" if keys else ""
    both = both_ends(ends[0], ends[1], *is_there)
    return f"select {names(k.column for k in op.keys)}inline({both}) as ({made}) from ({grouped}){where}"


def _is_of_set(call: Call) -> bool:
    """Whether it matters to the call that a row is there, not how often."""
    return call.function not in {"count", "sum"}


def _call(call: Call, columns: tuple[Column, ...], end: int) -> str:
    weight = f"w{end}"
    if call.function == "count" and call.argument is None:
        return f"coalesce(sum({weight}), 0L)"
    assert call.function is not None
    assert call.argument is not None
    operand = spark_expression(call.argument, columns)
    if call.function == "count":
        return f"coalesce(sum(case when {operand} then {weight} else 0L end), 0L)"
    if call.function == "sum":
        # a sum is null where no value is there, not where those that are there add up to nothing
        total = f"sum(cast({operand} as {call.column.carrier.spark}) * {weight})"
        return f"case when sum(case when {operand} is null then 0L else {weight} end) > 0 then {total} end"
    present = f"case when {weight} > 0 then {operand} end"
    return (
        f"count(distinct {present})" if call.function == "count_distinct" else f"{call.function}({present})"
    )


def distinct(op: Distinct, rows: str) -> str:
    """Each row once, at the ends at which it is there."""
    listed = names(op.columns)
    return (
        f"select {listed}if(sum(w0) > 0, 1L, 0L) as w0, if(sum(w1) > 0, 1L, 0L) as w1"
        f" from ({rows}) group by {listed[:-2]}"
    )


def set_operation(op: SetOperation, left: str, right: str) -> str:
    """Rows with the number that the counts on both sides give."""
    listed = names(op.columns)
    renamed = "".join(
        f"{spark_name(theirs.name)} as {spark_name(ours.name)}, "
        for ours, theirs in zip(op.columns, op.right.columns, strict=True)
    )
    both = union(
        [
            f"select {listed}w0 as l0, w1 as l1, 0L as r0, 0L as r1 from ({left})",
            f"select {renamed}0L as l0, 0L as l1, w0 as r0, w1 as r1 from ({right})",
        ]
    )
    sums = ", ".join(f"sum({name}) as {name}" for name in ("l0", "l1", "r0", "r1"))
    counts = f"select {listed}{sums} from ({both}) group by {listed[:-2]}"
    weights = ", ".join(f"{_kept(op, f'l{end}', f'r{end}')} as w{end}" for end in (0, 1))
    return f"select {listed}{weights} from ({counts})"


def _kept(op: SetOperation, left: str, right: str) -> str:
    if op.kind is SetKind.INTERSECT:
        return f"least({left}, {right})" if op.is_all else f"if({left} > 0 and {right} > 0, 1L, 0L)"
    return f"greatest({left} - {right}, 0L)" if op.is_all else f"if({left} > 0 and {right} <= 0, 1L, 0L)"


def single(op: Single, rows: str) -> str:
    """The rows, or an error if there are several of one key now."""
    keys = ", ".join(spark_name(name) for name in op.keys)
    made = ", ".join([spark_name(c.name) for c in op.columns] + ["w0", "w1"])
    group = f" group by {keys}" if keys else ""
    collected = f"select collect_list(struct({made})) as found, sum(w1) as n1 from ({rows}){group}"
    error = f"raise_error('{MORE_THAN_ONE_ROW}')"
    return f"select inline(if(n1 > 1, {error}, found)) as ({made}) from ({collected})"
