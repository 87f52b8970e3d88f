"""A stream table as the catalog knows it, and what a refresh of it did."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import NewType

from pgtrickle.model.frontier import Frontier
from pgtrickle.model.names import RelationName

StreamTableId = NewType("StreamTableId", int)
RelationId = NewType("RelationId", int)


class RefreshMode(Enum):
    """What the user asked for."""

    AUTO = "AUTO"
    DIFFERENTIAL = "DIFFERENTIAL"
    FULL = "FULL"


class Status(Enum):
    """Where a stream table stands in its life."""

    INITIALIZING = "INITIALIZING"
    ACTIVE = "ACTIVE"
    SUSPENDED = "SUSPENDED"
    ERROR = "ERROR"


class Action(Enum):
    """What a refresh did."""

    NO_DATA = "NO_DATA"
    DIFFERENTIAL = "DIFFERENTIAL"
    FULL = "FULL"
    REINITIALIZE = "REINITIALIZE"
    SKIP = "SKIP"


@dataclass(frozen=True, slots=True)
class StreamTable:
    """One row of `pgtrickle.pgt_stream_tables`.

    `follows_clock` tells whether time alone changes the result, once that is known; `cache_generation`,
    how often the caches of compiled queries have been cleared. `waits_for` says which triggers it waits for.
    One that `repairs_itself` is loaded anew when it does not hold the rows that it should hold; otherwise it
    stops.
    """

    id: StreamTableId
    relation: RelationId
    name: RelationName
    query: str
    schedule: str | None
    mode: RefreshMode
    effective_mode: RefreshMode | None
    downgrade_reason: str | None
    status: Status
    is_populated: bool
    frontier: Frontier | None
    upstream_frontier: Frontier | None
    data_timestamp: datetime | None
    last_refresh_at: datetime | None
    consecutive_errors: int
    last_error: str | None
    reinit_reason: str | None
    settings: tuple[tuple[str, str], ...]
    match_columns: tuple[str, ...]
    is_pooler_compatible: bool
    follows_clock: bool | None
    cache_generation: int
    created_at: datetime
    is_atomic: bool = True
    waits_for: str | None = None
    ground_generation: int = 0
    ground_error: str | None = None
    refresh_timeout: float | None = None
    """Seconds that a refresh may take; 0 is any, None is what the sidecar has as its default."""
    repairs_itself: bool = True


@dataclass(frozen=True, slots=True)
class RefreshOutcome:
    """What one refresh did, as stored in the history."""

    name: RelationName
    action: Action
    rows_inserted: int
    rows_deleted: int
    milliseconds: float
    reason: str
