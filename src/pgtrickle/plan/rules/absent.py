"""What a rule says where its operator has nothing of a kind: spelled out, so that no rule forgets it."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from pgtrickle.plan.expressions import Expression
from pgtrickle.plan.operators import Operator
from pgtrickle.plan.rules.needs import Binder, Needs
from pgtrickle.plan.rules.provenance import FindReads, HeldBy, OpenChild
from pgtrickle.plan.rules.rule import (
    AskConditions,
    AskKey,
    AskNullable,
    AskUnique,
    EarlyStop,
    Names,
    Pruner,
    Restrict,
)


def no_obstacle(op: Operator) -> None:
    """Spark evaluates it exactly."""


def no_groups(op: Operator) -> None:
    """It does not group rows."""


def no_expressions(op: Operator) -> tuple[Expression, ...]:
    """It evaluates no expression."""
    return ()


def no_spark_expressions(op: Operator) -> tuple[str, ...]:
    """Spark computes nothing for it that `explain` would show."""
    return ()


def no_open_children(op: Operator) -> tuple[OpenChild, ...]:
    """A further column of a child would change its rows, or would not pass through."""
    return ()


def no_reads(op: Operator, columns: tuple[str, ...], find_reads: FindReads) -> HeldBy:
    """No reads are known to hold its values."""
    return None


def any_nullable(op: Operator, name: str, ask: AskNullable) -> bool:
    """Each of its columns may be null."""
    return True


def never_unique(op: Operator, names: Set[str], ask: AskUnique) -> bool:
    """Nothing tells its rows apart."""
    return False


def no_row_key(op: Operator, ask: AskKey) -> None:
    """No columns are known to identify its rows."""


def nothing_to_prune(op: Operator, names: Names, pruner: Pruner) -> Operator:
    """It stays as it is."""
    return op


def nothing_to_bind(op: Operator, needs: Needs, binder: Binder) -> Operator:
    """It has no children to bind."""
    return op


def push_nothing(op: Operator, condition: Expression, restrict: Restrict) -> None:
    """A condition says something else below it."""


def tighten_nothing(op: Operator, condition: Expression, tighten: Restrict) -> Operator:
    """It pads nothing, and depends on rows that padding may have made."""
    return op


def same_stop(op: Operator, stop: EarlyStop) -> tuple[EarlyStop, ...]:
    """PostgreSQL may stop reading its children where it may stop reading it."""
    return tuple(stop for _ in op.children)


def same_nullable(op: Any, name: str, ask: AskNullable) -> bool:
    """A column can be null where the child's can."""
    return ask(op.child, name)


def same_row_key(op: Any, ask: AskKey) -> tuple[str, ...] | None:
    """What identifies a row of the child identifies the row made of it."""
    return ask(op.child)


def any_number_of_rows(op: Operator) -> bool:
    """It may have no row, or several."""
    return False


def no_group_child(op: Operator) -> None:
    """Its rows belong to no groups of a child."""


def no_widened_child(op: Operator, names: Set[str], ask: AskUnique) -> None:
    """It does more than add columns."""


def no_conditions(op: Operator, ask: AskConditions) -> tuple[Expression, ...]:
    """No condition is known to hold for all of its rows."""
    return ()


def no_endless_part(op: Operator, ask: AskConditions) -> None:
    """It ends when its children do."""
