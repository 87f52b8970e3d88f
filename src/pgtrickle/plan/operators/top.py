"""The first rows in an order."""

from __future__ import annotations

from dataclasses import dataclass

from pgtrickle.plan.operators.operator import Column, Operator


@dataclass(frozen=True, slots=True)
class Ordering:
    """One column to order by."""

    column: str
    is_descending: bool
    has_nulls_first: bool


@dataclass(frozen=True, slots=True)
class Top(Operator):
    """Of each combination of `partition` (of all rows without one) the rows after `offset`, `limit` at most.

    With `has_ties` also the rows that are equal in order to the last one. A limit of None is none.
    DISTINCT ON is the first row of each partition.
    """

    child: Operator
    partition: tuple[str, ...]
    order: tuple[Ordering, ...]
    limit: int | None
    offset: int = 0
    has_ties: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns
