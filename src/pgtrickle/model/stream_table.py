"""A stream table as stored in the catalog, and the outcome of a refresh."""

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
    """How a stream table is refreshed."""

    AUTO = "AUTO"
    DIFFERENTIAL = "DIFFERENTIAL"
    FULL = "FULL"


class Status(Enum):
    """The state of a stream table in its life cycle."""

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

    `follows_clock` says whether time alone changes the result; None if that is not known yet.
    `cache_generation` counts how often the caches of compiled queries have been cleared. `waits_for` names
    the triggers that it waits for. If `repairs_itself`, it is loaded again when its rows are wrong; otherwise
    it stops.
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
    """Seconds that a refresh may take; 0 is no limit, None is the default of the sidecar."""
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
