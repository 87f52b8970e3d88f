"""What all operators share: columns whose names are unique in the plan, and children."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, Self

from pgtrickle.model.carrier import Carrier
from pgtrickle.model.source import PgType


@dataclass(frozen=True, slots=True)
class Column:
    """A column of an operator; `carrier` is its form in Spark."""

    name: str
    type: PgType
    carrier: Carrier


class Operator(ABC):
    """A multiset of rows, described. Operators are frozen dataclasses.

    Fields declared as `Operator` or `tuple[Operator, ...]` are the children, in that order.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def columns(self) -> tuple[Column, ...]:
        """The columns of each row, without the weight that every row has in Spark."""

    @property
    def children(self) -> tuple[Operator, ...]:
        """The operators this one reads."""
        found: list[Operator] = []
        for name, is_several in _child_fields(type(self)):
            value = getattr(self, name)
            if is_several:
                found.extend(value)
            else:
                found.append(value)
        return tuple(found)

    def with_children(self, children: tuple[Operator, ...]) -> Self:
        """The same operator over other children."""
        remaining = list(children)
        changed: dict[str, Any] = {}
        for name, is_several in _child_fields(type(self)):
            if is_several:
                changed[name], remaining = tuple(remaining), []
            else:
                changed[name] = remaining.pop(0)
        assert not remaining, f"too many children for {type(self).__name__}"
        copy: Any = replace(self, **changed) if changed else self  # type: ignore[type-var]
        return copy  # type: ignore[no-any-return]

    @property
    def names(self) -> frozenset[str]:
        """The names of its columns."""
        return frozenset(column.name for column in self.columns)

    @property
    def text_columns(self) -> frozenset[str]:
        """The names of its columns that are texts."""
        return frozenset(c.name for c in self.columns if c.type.category == _TEXT_CATEGORY)

    def column(self, name: str) -> Column:
        """The column of that name; KeyError if there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    def walk(self) -> Iterator[Operator]:
        """This operator and every one below it."""
        yield self
        for child in self.children:
            yield from child.walk()


_TEXT_CATEGORY = "S"

_CHILD_TYPES = {"Operator": False, "tuple[Operator, ...]": True}
"""How a field is declared that holds a child, and whether it holds several."""


@cache
def _child_fields(kind: Any) -> tuple[tuple[str, bool], ...]:
    found = ((field.name, _CHILD_TYPES.get(str(field.type))) for field in fields(kind))
    return tuple((name, is_several) for name, is_several in found if is_several is not None)
