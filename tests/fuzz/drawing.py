"""What every part of a drawn query shares: dice, tables, names, and common table expressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final, Protocol, TypeVar

from tests.fuzz.tables import Columns, Table

T = TypeVar("T")

ALIASES: Final = (
    ("w0", "w1", "weight", "n1"),
    ("count", "k0", "s0", "f0"),
    ("again", "matches", "found", "l"),
    ("t", "r", "number_in_order", "rows_in_all"),
    ("id", "k", "x", "s"),
)
"""Names that the engine, or the tables, have too."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query and the kinds of its columns; an ordered one cannot be ordered again without parentheses."""

    sql: str
    columns: Columns
    is_ordered: bool = False


@dataclass(frozen=True, slots=True)
class Scope:
    """What an expression may read: columns of its own query, and of those around it.

    `depth` tells how many more levels of queries may nest in it.
    """

    own: Columns
    outer: Columns = field(default_factory=dict)
    depth: int = 0

    @property
    def lent(self) -> Columns:
        """What queries nested here may read of this one: columns, no calls."""
        return {name: kind for name, kind in (self.outer | self.own).items() if "(" not in name}

    @property
    def alone(self) -> Scope:
        """The same columns without those around, and nothing nested."""
        return Scope(self.own)


class Nested(Protocol):
    """Draws a query that stands inside of another, with columns of these kinds."""

    def __call__(self, draw: Draw, scope: Scope, kinds: Sequence[str]) -> str: ...


class Draw(Random):
    """Dice that know the tables. Every name it gives is new in the query."""

    def __init__(self, seed: str, tables: Sequence[Table], nested: Nested, scalar: Nested) -> None:
        super().__init__(seed)
        self.tables = tables
        self.nested = nested
        self.scalar = scalar
        self.ctes: dict[str, Columns] = {}
        self._named = 0
        self._aliases = self.choice(ALIASES) if self.chance(0.2) else ()

    def chance(self, probability: float) -> bool:
        return self.random() < probability

    def weighted(self, options: Mapping[T, float]) -> T:
        return self.choices(list(options), list(options.values()))[0]

    def name(self, letter: str) -> str:
        self._named += 1
        return f"{letter}{self._named}"

    def alias(self, number: int) -> str:
        """The name of an output, the same for the same place in all queries that stand in one."""
        return self._aliases[number] if number < len(self._aliases) else f"c{number}"

    def some(self, options: Sequence[T], least: int, most: int) -> list[T]:
        """Between `least` and `most` of the options, fewer where there are not so many."""
        count = min(len(options), self.randint(least, most))
        return self.sample(list(options), count)
