"""Rows that a query makes of its own rows, until it makes no more."""

from __future__ import annotations

from dataclasses import dataclass

from pgtrickle.plan.operators.operator import Column, Operator


@dataclass(frozen=True, slots=True)
class Itself(Operator):
    """Inside the recursive term: the rows that the step before it gave; `name` is the recursion's."""

    name: str
    columns_: tuple[Column, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.columns_


@dataclass(frozen=True, slots=True)
class Recursive(Operator):
    """The rows of `base`, and those that `step` makes of them, of these again, and so on to the end.

    The columns of both are taken by position. Unless `is_all`, a row that was there already is
    left out, and nothing is made of it again. `stored` names the columns of the stream table that hold these
    columns, if the stream table holds the rows of the recursion and nothing else.
    """

    base: Operator
    step: Operator
    name: str
    columns_: tuple[Column, ...]
    is_all: bool
    stored: tuple[str, ...] | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.columns_
