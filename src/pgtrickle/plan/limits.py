"""What a query may be at most: past these limits it is recomputed instead of followed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final

from sqlglot import exp

from pgtrickle.model.errors import UnsupportedQuery


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """The limits of one compilation. They are part of the key under which it is kept."""

    max_text_bytes: int = 1_000_000
    """The canonical text of a query, and of each view it reads."""
    max_depth: int = 250
    """Levels of nested expressions and subqueries; a chain of ANDs counts one for each."""
    max_relations: int = 100
    """Tables, views and functions that a query names, counted each time that it does."""
    max_subqueries: int = 100
    """Subqueries inside expressions, views and repeated WITH queries included."""
    max_grouping_sets: int = 64
    """The grouping sets of one GROUP BY."""

    def exceeded(self, limit: str) -> UnsupportedQuery:
        """The error for a query past the limit of this name."""
        name = limit.upper()
        return UnsupportedQuery(
            f"the query exceeds {name} = {getattr(self, limit)}, so it cannot be followed incrementally",
            hint=f"use refresh mode FULL or AUTO, or start the sidecar with a larger PGTRICKLE_{name}",
        )

    def check_text(self, text: str) -> None:
        """Refuse a text that is too long to parse."""
        if len(text.encode()) > self.max_text_bytes:
            raise self.exceeded("max_text_bytes")

    def check_depth(self, tree: exp.Expr) -> None:
        """Refuse a tree so deep that walking it would exhaust the stack."""
        level: list[exp.Expr] = [tree]
        for _ in range(self.max_depth):
            level = [child for node in level for child in node.iter_expressions()]
            if not level:
                return
        raise self.exceeded("max_depth")


USUAL_LIMITS: Final = QueryLimits()


def limits_from(environment: Mapping[str, str]) -> QueryLimits:
    """The limits as the environment sets them, as in `PGTRICKLE_MAX_DEPTH`; only numbers count."""
    names = [field.name for field in fields(QueryLimits)]
    given = {name: environment.get(f"PGTRICKLE_{name.upper()}", "") for name in names}
    numbers = {name: int(text) for name, text in given.items() if text.isascii() and text.isdigit()}
    return QueryLimits(**{name: number for name, number in numbers.items() if number})
