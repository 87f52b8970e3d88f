"""Joins of relations with two weights, as Spark SQL."""

from __future__ import annotations

from collections.abc import Iterable

from pgtrickle.plan.lowering.exactness import spark_expression, spark_name
from pgtrickle.plan.lowering.spark_text import folded, names, union
from pgtrickle.plan.operators import Column, Join, Mark, Operator, OuterJoin


def region(parts: list[tuple[str, str]], columns: Iterable[Column], conditions: list[str]) -> str:
    """Inner joins in one SELECT: relations, each with its condition to the ones before it.

    The weights multiply at each end. Columns have one name in the whole plan, so only weights are
    told apart by their relation. The joins are written as left ones, of which the condition on the
    weights leaves what an inner join has: after an inner join Spark would exchange the rows again.
    """
    joined = "".join(
        f"{' left join ' if number else ''}{relation} t{number}{f' on {on}' if number else ''}"
        for number, (relation, on) in enumerate(parts)
    )
    before, now = (" * ".join(f"t{number}.w{end}" for number in range(len(parts))) for end in (0, 1))
    where = " and ".join([*conditions, f"({before} <> 0 or {now} <> 0)"])
    return f"select {names(columns)}{before} as w0, {now} as w1 from {joined} where {where}"


def join_condition(op: Join, position: int) -> str:
    """What makes two rows of a join a pair; the right one is at this position of its region."""
    parts = [f"{spark_name(left)} = {spark_name(right)}" for left, right in op.on]
    if op.condition:
        parts.append(spark_expression(op.condition, op.columns))
    return _conjunction(parts if op.on else [_any_pair("t0.w0", f"t{position}.w0"), *parts])


def _any_pair(left: str, right: str) -> str:
    """True of two weights, which are never null.

    A join without an equation would be a broadcast, which is a job of its own.
    """
    return f"({left} is null) = ({right} is null)"


def _conjunction(parts: list[str]) -> str:
    return " and ".join(parts)


def mark(op: Mark, left: str, right: str) -> str:
    """Rows of the left, twice if the answer was another one before."""
    counted = _counted(op, left, right)
    mark_name = spark_name(op.column_.name)
    stayed = "array(struct(c1 > 0 as m, w0, w1))"
    moved = "array(struct(c0 > 0 as m, w0, 0L as w1), struct(c1 > 0 as m, 0L as w0, w1))"
    ends = f"inline(if((c0 > 0) = (c1 > 0), {stayed}, {moved})) as ({mark_name}, w0, w1)"
    return f"select {names(op.left.columns)}{ends} from ({counted})"


def outer_join(op: OuterJoin, left: str, right: str) -> str:
    """Pairs, and for each row of the left one without a partner for the ends at which it has none."""
    inner = "".join(f"r.{spark_name(c.name)} as {spark_name(c.name)}, " for c in op.right.columns)
    matched = f"case when r.w0 is not null then struct({inner}l.w0 * r.w0 as w0, l.w1 * r.w1 as w1) end"
    padding = f"struct({_nulls(op.right.columns)}if(c0 > 0, 0L, w0) as w0, if(c1 > 0, 0L, w1) as w1)"
    listed = names(op.left.columns, "l.")
    grouped = (
        f"select {listed}l.w0, l.w1, coalesce(sum(r.w0), 0L) as c0, coalesce(sum(r.w1), 0L) as c1,"
        f" collect_list({matched}) as matches"
        f" from ({folded(op.left.columns, left)}) l left join ({right}) r"
        f" on {_matching(op, 'w0')} group by {listed}l.w0, l.w1"
    )
    made = ", ".join([spark_name(c.name) for c in op.right.columns] + ["w0", "w1"])
    unfolded = f"inline(concat(matches, array({padding}))) as ({made})"
    pairs = f"select {names(op.left.columns)}{unfolded} from ({grouped})"
    kept = f"select * from ({pairs}) where w0 <> 0 or w1 <> 0"
    return union([kept, _alone_on_the_right(op, left, right)] if op.keeps_right else [kept])


def _alone_on_the_right(op: OuterJoin, left: str, right: str) -> str:
    listed = names(op.right.columns, "r.")
    counted = (
        f"select {listed}r.w0, r.w1, coalesce(sum(l.w0), 0L) as c0, coalesce(sum(l.w1), 0L) as c1"
        f" from ({folded(op.right.columns, right)}) r left join ({left}) l"
        f" on {_matching(op, 'w0')} group by {listed}r.w0, r.w1"
    )
    columns = _nulls(op.left.columns) + names(op.right.columns)
    return (
        f"select {columns}if(c0 > 0, 0L, w0) as w0, if(c1 > 0, 0L, w1) as w1"
        f" from ({counted}) where (c0 = 0 and w0 <> 0) or (c1 = 0 and w1 <> 0)"
    )


def _counted(op: Mark, left: str, right: str) -> str:
    """Rows of the left with the number of their matches at each end."""
    listed = names(op.left.columns, "l.")
    if op.condition is None:
        keys = "".join(f"{spark_name(name)}, " for name in dict.fromkeys(theirs for _, theirs in op.on))
        group = f" group by {keys[:-2]}" if keys else ""
        counts = f"select {keys}sum(w0) as c0, sum(w1) as c1 from ({right}){group}"
        return (
            f"select {listed}l.w0, l.w1, coalesce(r.c0, 0L) as c0, coalesce(r.c1, 0L) as c1"
            f" from ({left}) l left join ({counts}) r on {_matching(op, 'c0')}"
        )
    return (
        f"select {listed}l.w0, l.w1, coalesce(sum(r.w0), 0L) as c0, coalesce(sum(r.w1), 0L) as c1"
        f" from ({folded(op.left.columns, left)}) l left join ({right}) r"
        f" on {_matching(op, 'w0')} group by {listed}l.w0, l.w1"
    )


def _matching(op: Mark | OuterJoin, weight: str) -> str:
    """What makes two rows a pair; the right one has this weight."""
    parts = [f"l.{spark_name(left)} = r.{spark_name(right)}" for left, right in op.on]
    if op.condition:
        parts.append(spark_expression(op.condition, _sides(op)))
    return _conjunction(parts if op.on else [_any_pair("l.w0", f"r.{weight}"), *parts])


def _sides(op: Operator) -> tuple[Column, ...]:
    left, right = op.children
    return left.columns + right.columns


def _nulls(columns: tuple[Column, ...]) -> str:
    return "".join(f"cast(null as {c.carrier.spark}) as {spark_name(c.name)}, " for c in columns)
