"""Nested inner joins and the filters between them, as one SELECT of Spark."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pgtrickle.plan.lowering.exactness import spark_expression, spark_name
from pgtrickle.plan.lowering.spark_text import names_list
from pgtrickle.plan.operators import Column, Filter, InputLeaf, Join, Operator
from pgtrickle.plan.rules.pairs import any_pair, columns_read
from pgtrickle.plan.rules.rule import LowerToSpark, Names


def region_sql(op: Join | Filter, needed: Names, lower: LowerToSpark) -> str:
    """The whole region as one SELECT of the columns that are needed."""
    columns = [c for c in op.columns if c.name in needed]
    region = _Region(needed | _read_by(op), lower)
    region.add(op, "")
    return _select(region.relations, columns, region.conditions)


@dataclass(slots=True)
class _Region:
    """The relations of a region in their order, each with its condition to the ones before it."""

    read: Names
    lower: LowerToSpark
    relations: list[tuple[str, str]] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)

    def add(self, op: Operator, on: str) -> None:
        """Collect the relations of a part; `on` ties the first of them to those before it."""
        if isinstance(op, Filter):
            self.add(op.child, on)
            self.conditions.append(spark_expression(op.condition, op.child.columns))
        elif isinstance(op, Join) and not on:
            self.add(op.left, "")
            self.add(op.right, _join_condition(op, len(self.relations)))
        elif isinstance(op, InputLeaf):
            self.relations.append((op.input.name, on))
        else:
            self.relations.append((f"({self.lower(op, self.read & op.names)})", on))


def _read_by(op: Operator) -> Names:
    """The columns that the conditions of a region read."""
    if isinstance(op, Filter):
        return op.condition.columns | _read_by(op.child)
    if isinstance(op, Join):
        return columns_read(op) | _read_by(op.left) | _read_by(op.right)
    return frozenset()


def _join_condition(op: Join, position: int) -> str:
    """What makes two rows of a join a pair; the right one is at this position of its region."""
    parts = [f"{spark_name(left)} = {spark_name(right)}" for left, right in op.on]
    if op.condition:
        parts.append(spark_expression(op.condition, op.columns))
    return " and ".join(parts if op.on else [any_pair("t0.w0", f"t{position}.w0"), *parts])


def _select(relations: list[tuple[str, str]], columns: Iterable[Column], conditions: list[str]) -> str:
    """The weights multiply at each end.

    Columns have one name in the whole plan, so only weights are told apart by their relation. The joins are
    written as left ones, of which the condition on the weights leaves what an inner join has: after an
    inner join Spark would exchange the rows again.
    """
    joined = "".join(
        f"{' left join ' if number else ''}{relation} t{number}{f' on {on}' if number else ''}"
        for number, (relation, on) in enumerate(relations)
    )
    before, now = (" * ".join(f"t{number}.w{end}" for number in range(len(relations))) for end in (0, 1))
    where = " and ".join([*conditions, f"({before} <> 0 or {now} <> 0)"])
    return f"select {names_list(columns)}{before} as w0, {now} as w1 from {joined} where {where}"
