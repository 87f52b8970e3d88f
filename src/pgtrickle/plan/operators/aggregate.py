"""One row per group."""

from __future__ import annotations

from dataclasses import dataclass

from pgtrickle.plan.expressions import Expression
from pgtrickle.plan.operators.operator import Column, Operator


@dataclass(frozen=True, slots=True)
class GroupKey:
    """A column of the result by which rows are grouped, and what it is in the child."""

    column: Column
    expression: Expression


@dataclass(frozen=True, slots=True)
class Call:
    """One aggregate of the group: `expression` is the whole call as PostgreSQL writes it.

    `function` is one of the exact ones (count, sum, min, max, bool_and, bool_or) if Spark may
    compute it from `argument`, whose FILTER is already folded in; otherwise None, and only
    PostgreSQL can evaluate the call.
    """

    column: Column
    expression: Expression
    function: str | None = None
    argument: Expression | None = None


@dataclass(frozen=True, slots=True)
class Aggregate(Operator):
    """A row for each combination of `keys` in `child`; without keys one row, also over nothing."""

    child: Operator
    keys: tuple[GroupKey, ...]
    calls: tuple[Call, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(key.column for key in self.keys) + tuple(call.column for call in self.calls)
