"""Definitions as text, and materialized views that could be stream tables, as the API returns them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pgtrickle.interfaces.http.models.base import Model
from pgtrickle.interfaces.http.models.tables import TableRow


class Definitions(Model):
    """CREATE STREAM TABLE statements."""

    definitions: str


class PlannedChange(Model):
    """What is done about a stream table to match its definition."""

    action: Literal["create", "alter", "drop", "none"]
    name: str
    changes: list[str]


class MaterializedView(Model):
    """A materialized view. `is_own` says whether the role of the server owns it, and so can adopt it."""

    name: str
    owner: str
    is_populated: bool
    rows: int
    bytes: int
    query: str
    is_own: bool


class AdoptionPlan(Model):
    """What a materialized view would be as a stream table."""

    name: str
    rows: int
    asked_mode: str
    effective_mode: str
    reason: str
    sources: list[str]
    reads: list[str]
    kept: list[str]
    obstacles: list[str]
    missing_grants: list[str]
    missing_indexes: list[str]


class Adoption(Model):
    """With `dry_run` the plan, otherwise the stream table and notices about it."""

    plan: AdoptionPlan | None
    table: TableRow | None
    notices: list[str]


class Candidate(Model):
    """A materialized view or a statement that could be a stream table."""

    kind: str
    name: str
    query: str
    effective_mode: str | None
    reason: str
    saved_ms_per_hour: float | None
    basis: str
    plan_cost: float
    sources: list[str]
    missing_grants: list[str]
    missing_indexes: list[str]
    next_step: str


class Advice(Model):
    """What would gain most as a stream table, best first."""

    candidates: list[Candidate]
    notes: list[str] = Field(description="What could not be looked at.")
