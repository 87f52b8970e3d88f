"""What a query may be at most: past these limits it is recomputed instead of followed."""

from __future__ import annotations

import os

from sqlglot import exp

from pgtrickle.model.errors import UnsupportedQuery


def _limit(name: str, usual: int) -> int:
    """The limit from the environment, as `PGTRICKLE_` and its name; the usual one if that says no number."""
    text = os.environ.get(f"PGTRICKLE_{name}", "")
    return int(text) if text.isascii() and text.isdigit() and int(text) else usual


MAX_TEXT_BYTES = _limit("MAX_TEXT_BYTES", 1_000_000)
"""The canonical text of a query, and of each view it reads."""
MAX_DEPTH = _limit("MAX_DEPTH", 250)
"""Levels of nested expressions and subqueries; a chain of ANDs counts one for each."""
MAX_RELATIONS = _limit("MAX_RELATIONS", 100)
"""Tables, views and functions that a query names, counted each time that it does."""
MAX_SUBQUERIES = _limit("MAX_SUBQUERIES", 100)
"""Subqueries inside expressions, views and repeated WITH queries included."""
MAX_GROUPING_SETS = _limit("MAX_GROUPING_SETS", 64)
"""The grouping sets of one GROUP BY."""


def exceeded(limit: str, most: int) -> UnsupportedQuery:
    """The error for a query past a limit."""
    return UnsupportedQuery(
        f"the query exceeds {limit} = {most}, so it cannot be followed incrementally",
        hint=f"use refresh mode FULL or AUTO, or start the sidecar with a larger PGTRICKLE_{limit}",
    )


def check_text(text: str) -> None:
    """Refuse a text that is too long to parse."""
    if len(text.encode()) > MAX_TEXT_BYTES:
        raise exceeded("MAX_TEXT_BYTES", MAX_TEXT_BYTES)


def check_depth(tree: exp.Expr) -> None:
    """Refuse a tree so deep that walking it would exhaust the stack."""
    level: list[exp.Expr] = [tree]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in node.iter_expressions()]
        if not level:
            return
    raise exceeded("MAX_DEPTH", MAX_DEPTH)
