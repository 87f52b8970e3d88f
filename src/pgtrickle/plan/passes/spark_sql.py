"""Writes bound operators as Spark SQL: every relation has its columns and two weights.

`w0` is how often a row was there before the window, `w1` how often it is there now. One pass over
the restricted rows gives both ends of the window, and the change is their difference.
"""

from __future__ import annotations

from enum import Enum

from pgtrickle.plan.lowering.exactness import spark_name
from pgtrickle.plan.lowering.spark_text import names_list
from pgtrickle.plan.operators import Operator
from pgtrickle.plan.reads import WEIGHT, Input, Role
from pgtrickle.plan.rules import RULES
from pgtrickle.plan.rules.rule import Names


def spark_sql(op: Operator, needed: Names | None = None) -> str:
    """A SELECT of the operator's columns, under their plan names, and the two weights.

    Where only some columns are needed, joins leave out the others.
    """
    lower = RULES[type(op)].spark_sql
    if lower is None:
        raise TypeError(f"{type(op).__name__} is never evaluated by Spark")
    return lower(op, needed, spark_sql)


class End(Enum):
    """What of the two weights a result is about."""

    CHANGE = "w1 - w0"
    NOW = "w1"


def change_sql(op: Operator, end: End = End.CHANGE) -> str:
    """The change of an operator's rows, each once, with its net weight; what nets to zero is gone."""
    listed = names_list(op.columns)
    group = f" group by {listed[:-2]}" if listed else ""
    net = f"sum({end.value})"
    return f"select {listed}{net} as {WEIGHT} from ({spark_sql(op)}){group} having {net} <> 0"


def rows_sql(op: Operator) -> str:
    """The rows of an operator as they are now, with their weights; the same row may come several times."""
    return f"select {names_list(op.columns)}w1 as {WEIGHT} from ({spark_sql(op)}) where w1 <> 0"


def input_sql(one: Input) -> str:
    """An input over views named like its reads."""
    fields = "".join(f"{spark_name(field.name)}, " for field in one.fields)
    return " union all ".join(f"select {fields}{_ROLES[role]} from {name}" for name, role in one.reads)


_ROLES = {
    Role.CHANGE: f"greatest(-{WEIGHT}, 0L) as w0, greatest({WEIGHT}, 0L) as w1",
    Role.BOTH: f"{WEIGHT} as w0, {WEIGHT} as w1",
    Role.ONCE: "1L as w0, 1L as w1",
    Role.NOW: "0L as w0, 1L as w1",
    Role.BEFORE: "1L as w0, 0L as w1",
}
