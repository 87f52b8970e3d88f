"""What the analysis of a query may ask: sources, views, aggregate names and types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pgtrickle.model.errors import UnsupportedQuery
from pgtrickle.model.names import RelationName
from pgtrickle.model.source import PgType, Source
from pgtrickle.plan.program import WEIGHT

MAX_NAME_BYTES = 60
"""PostgreSQL cuts identifiers at 63 bytes; plan names stay below."""


class Typer(Protocol):
    """Tells the types of expressions; PostgreSQL does."""

    def __call__(self, from_sql: str, expressions: Sequence[str]) -> list[PgType]: ...


@dataclass(frozen=True, slots=True)
class Definition:
    """A query as PostgreSQL wrote it down, with all it reads."""

    query: str
    sources: Mapping[RelationName, Source]
    views: Mapping[RelationName, str]
    aggregates: frozenset[str]
    outputs: tuple[tuple[str, PgType], ...]


@dataclass(slots=True)
class Context:
    """One analysis: the definition, the typer, and the names given so far."""

    definition: Definition
    typer: Typer
    taken: set[str] = field(default_factory=lambda: {WEIGHT})

    def unique(self, wish: str) -> str:
        """A plan-wide unique name, close to the wish."""
        base = wish
        while len(base.encode()) > MAX_NAME_BYTES - 4:
            base = base[:-1]
        name, number = base, 1
        while name in self.taken:
            number += 1
            name = f"{base}_{number}"
        self.taken.add(name)
        return name


def refuse(what: str) -> UnsupportedQuery:
    """The error for a part of a query that deltas cannot follow."""
    return UnsupportedQuery(f"{what} cannot be followed incrementally", hint="use refresh mode FULL or AUTO")
