"""What actions return."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pgtrickle.interfaces.http.models.base import Cells, Model
from pgtrickle.interfaces.http.models.tables import Column


class Done(Model):
    """It is done."""

    ok: Literal[True] = True


class CreatedTable(Model):
    """A stream table that was created."""

    name: str
    pgt_id: int


class Outcome(Model):
    """What a refresh did."""

    action: str
    rows_inserted: int
    rows_deleted: int
    ms: float
    reason: str


class Validation(Model):
    """How a query would be refreshed as a stream table, and what it lacks."""

    asked_mode: str
    effective_mode: str
    reason: str
    columns: list[Column]
    sources: list[str]
    missing_grants: list[str]
    missing_indexes: list[str]
    reads: list[str] = Field(description="What one refresh reads if all sources have changed.")
    rows: list[Cells] | None
    rows_error: str | None = Field(description="Why there are no rows, although the query is valid.")


class Sentences(Model):
    """What was done."""

    done: list[str]


class Changed(Model):
    """Whether that was different before."""

    changed: bool


class Cleared(Model):
    """How many compiled queries the catalog had."""

    entries: int


class Names(Model):
    """Stream tables."""

    tables: list[str]


class Verified(Model):
    """A stream table that equals its query."""

    name: str
    rows: int
    milliseconds: float
