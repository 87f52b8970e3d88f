"""A stream table as stored in the catalog, and the outcome of a refresh."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import ClassVar, NewType

from pgtrickle.model.auxiliary import AuxiliaryUse
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.names import RelationName
from pgtrickle.model.records import Record

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
class ChangeFeed:
    """Where the changes of a stream table are kept, and how many rows at most.

    `columns` are the names of those of the stream table, in the order of `c1 … cn` in the table of kept
    changes. A feed that does not fit is opened again. `reset_reason` says why the next refresh records a
    reset instead of its rows.
    """

    table: RelationName
    columns: tuple[str, ...]
    most_rows: int
    fits: bool = True
    reset_reason: str | None = None


@dataclass(frozen=True, slots=True)
class StreamTable:
    """One row of `pgtrickle.pgt_stream_tables`.

    `follows_clock` says whether time alone changes the result; None if that is not known yet.
    `cache_generation` counts how often the caches of compiled queries have been cleared. `waits_for` names
    the triggers that it waits for. If `repairs_itself`, it is loaded again when its rows are wrong; otherwise
    it stops. `is_append_only` is a promise of its owner that rows are only ever added to it. `feed` is where
    its changes are kept; None if they are not.
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
    is_append_only: bool = False
    auxiliary: AuxiliaryUse = AuxiliaryUse.AUTO
    """Whether inner results of its query are kept."""
    state_is_behind: bool = False
    """Whether its rows are newer than the state beside them, so that a change cannot be followed."""
    feed: ChangeFeed | None = None


@dataclass(frozen=True, slots=True, repr=False)
class RefreshOutcome(Record):
    """What one refresh did, as stored in the history.

    `read_ms`, `compute_ms` and `apply_ms` are parts of `milliseconds`. `wait_ms` came before: in the queue of
    the sidecar, and until the stream table was prepared and claimed. `commit_ms` came after. They are None if
    they are not known: after a refresh that a running sidecar carried out for you, the last two.
    """

    table_columns: ClassVar = (
        "name",
        "action",
        "rows_inserted",
        "rows_deleted",
        "milliseconds",
        "reason",
    )

    name: RelationName
    action: Action
    rows_inserted: int
    rows_deleted: int
    milliseconds: float
    reason: str
    read_ms: float | None = None
    compute_ms: float | None = None
    apply_ms: float | None = None
    wait_ms: float | None = None
    commit_ms: float | None = None
