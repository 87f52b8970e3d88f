"""Rows that the query itself spells out."""

from __future__ import annotations

from dataclasses import dataclass

from pgtrickle.plan.operators.operator import Column, Operator


@dataclass(frozen=True, slots=True)
class Values(Operator):
    """The rows of a query that reads no table, such as VALUES; `query` is its SQL.

    Its columns are taken by position. Without columns it is one row of nothing.
    """

    query: str
    columns_: tuple[Column, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.columns_
