"""Pieces of PostgreSQL's SQL that several operators are written with."""

from __future__ import annotations

from collections.abc import Iterable

from pgtrickle.model.names import quoted
from pgtrickle.plan.operators import Column


def typed_nulls(columns: Iterable[Column]) -> str:
    """A select list of nulls under the names of columns."""
    return ", ".join(f"null::{c.type.text} as {quoted(c.name)}" for c in columns)


def no_rows(columns: Iterable[Column]) -> str:
    """A SELECT with these columns and without rows."""
    return f"select {typed_nulls(columns)} where false"
