"""What a query may be at most: past these limits it is recomputed instead of followed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from pgtrickle.model.errors import UnsupportedQuery
from pgtrickle.model.limit_settings import (
    MAX_DEPTH,
    MAX_GROUPING_SETS,
    MAX_RELATIONS,
    MAX_SUBQUERIES,
    MAX_TEXT_BYTES,
)
from pgtrickle.model.setting import PREFIX


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """The limits of one compilation. They are part of the key under which it is kept."""

    max_text_bytes: int = MAX_TEXT_BYTES.default
    """The canonical text of a query, and of each view it reads."""
    max_depth: int = MAX_DEPTH.default
    """Levels of nested expressions and subqueries; a chain of ANDs counts one for each."""
    max_relations: int = MAX_RELATIONS.default
    """Tables, views and functions that a query names, counted each time that it does."""
    max_subqueries: int = MAX_SUBQUERIES.default
    """Subqueries inside expressions, views and repeated WITH queries included."""
    max_grouping_sets: int = MAX_GROUPING_SETS.default
    """The grouping sets of one GROUP BY."""

    def limit_error(self, limit: str) -> UnsupportedQuery:
        """The error for a query past the limit of this name."""
        name = limit.upper()
        return UnsupportedQuery(
            f"the query exceeds {name} = {getattr(self, limit)}, so it cannot be followed incrementally",
            hint=f"use the mode AUTO or FULL, or start the sidecar with a larger {PREFIX}{name}",
        )

    def check_text(self, text: str) -> None:
        """Refuse a text that is too long to parse."""
        if len(text.encode()) > self.max_text_bytes:
            raise self.limit_error("max_text_bytes")

    def check_depth(self, tree: exp.Expr) -> None:
        """Refuse a tree so deep that walking it would exhaust the stack."""
        level: list[exp.Expr] = [tree]
        for _ in range(self.max_depth):
            level = [child for node in level for child in node.iter_expressions()]
            if not level:
                return
        raise self.limit_error("max_depth")


USUAL_LIMITS: Final = QueryLimits()
