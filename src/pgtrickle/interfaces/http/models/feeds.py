"""Changes of rows, as the API returns them."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from pgtrickle.interfaces.http.models.base import Cells, Model
from pgtrickle.interfaces.http.models.tables import Column


class Preview(Model):
    """What the next refresh would change. The numbers are exact; the rows are the first of them."""

    columns: list[Column]
    inserted: list[Cells]
    deleted: list[Cells]
    rows_inserted: int
    rows_deleted: int
    is_truncated: bool
    strategy: str
    reason: str
    ms: float


class Batch(Model):
    """What one refresh changed, or a part of it."""

    sequence: int = Field(description="The point after these changes, to continue from.")
    refresh_id: int = Field(description="The same for all changes of one refresh.")
    at: datetime
    inserted: list[Cells]
    deleted: list[Cells]
    is_complete: bool = Field(description="Whether the refresh has no more changes after these.")
    reset: str | None = Field(description="Why the whole content was replaced, if it was: read it again.")


class Changes(Model):
    """Changes after a point, in order, each exactly once."""

    columns: list[Column]
    changes: list[Batch]
    next: int = Field(description="The point to continue from.")
