"""The rules: everything about one operator in one file, and the index of them all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pgtrickle.plan.operators import (
    Aggregate,
    Answer,
    Distinct,
    Evaluated,
    Filter,
    Itself,
    Join,
    Leaf,
    Mark,
    Nothing,
    Operator,
    OuterJoin,
    Project,
    Recursive,
    Scan,
    SetOperation,
    Single,
    TableFunction,
    Threshold,
    Top,
    UnionAll,
    Values,
    Window,
)
from pgtrickle.plan.rules import (
    aggregate,
    bound,
    distinct,
    evaluated,
    join,
    mark,
    outer_join,
    project,
    recursive,
    scan,
    set_operation,
    single,
    table_function,
    threshold,
    top,
    union_all,
    values,
    window,
)
from pgtrickle.plan.rules import filter as filter_
from pgtrickle.plan.rules.kind import RuleKind
from pgtrickle.plan.rules.rule import Rule

RULES: Final[Mapping[type[Operator], Rule]] = {
    Scan: scan.RULE,
    Values: values.RULE,
    Filter: filter_.RULE,
    Project: project.RULE,
    TableFunction: table_function.RULE,
    UnionAll: union_all.RULE,
    Join: join.RULE,
    OuterJoin: outer_join.RULE,
    Mark: mark.RULE,
    Threshold: threshold.RULE,
    Aggregate: aggregate.RULE,
    Distinct: distinct.RULE,
    SetOperation: set_operation.RULE,
    Window: window.RULE,
    Top: top.RULE,
    Single: single.RULE,
    Recursive: recursive.RULE,
    Itself: recursive.ITSELF,
    Evaluated: evaluated.RULE,
    Leaf: bound.LEAF,
    Answer: bound.ANSWER,
    Nothing: bound.NOTHING,
}

__all__ = ["RULES", "Rule", "RuleKind"]
