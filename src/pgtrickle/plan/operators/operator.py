"""What all operators share: columns with plan-wide unique names, and children."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

from pgtrickle.model.carrier import Carrier
from pgtrickle.model.source import PgType


@dataclass(frozen=True, slots=True)
class Column:
    """A column of an operator; `carrier` is its form in Spark."""

    name: str
    type: PgType
    carrier: Carrier


class Operator(ABC):
    """A bag of rows, described."""

    __slots__ = ()

    @property
    @abstractmethod
    def columns(self) -> tuple[Column, ...]:
        """The columns of each row, without the weight that every row has in Spark."""

    @property
    def children(self) -> tuple[Operator, ...]:
        """The operators this one reads."""
        return ()

    @property
    def names(self) -> frozenset[str]:
        """The names of its columns."""
        return frozenset(column.name for column in self.columns)

    def column(self, name: str) -> Column:
        """The column of that name; KeyError if there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    def walk(self) -> Iterator[Operator]:
        """This operator and all below it."""
        yield self
        for child in self.children:
            yield from child.walk()
