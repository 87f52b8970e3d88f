"""What one tick knows of one stream table."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from pgtrickle.model.stream_table import Status, StreamTableId
from pgtrickle.model.tier import Tier
from pgtrickle.scheduler.policy.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Candidate:
    """What one tick knows of one stream table.

    `always` claims that the result changes with time alone, so that it is worth a refresh without changes;
    `compares`, that it reads a source of whose changes only a refresh can tell. `data_timestamp` is the
    moment whose data it shows. `recent_durations` are those of the latest refreshes that had work, newest
    first; `is_behind` says that somebody was told that they take longer than its interval.
    `is_gated`: it waits until somebody opens the gate before a source, whoever asks.
    """

    id: StreamTableId
    schedule: Schedule
    status: Status
    is_populated: bool
    last_refresh_at: datetime | None
    has_pending_changes: bool
    retry_at: datetime | None = None
    refresh_requested: bool = False
    needs_reinit: bool = False
    always: bool = False
    compares: bool = False
    data_timestamp: datetime | None = None
    tier: Tier = Tier.HOT
    recent_durations: tuple[timedelta, ...] = ()
    is_behind: bool = False
    is_gated: bool = False
