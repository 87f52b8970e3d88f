"""What the decision whether a stream table is due is based on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from pgtrickle.model.stream_table import Status, StreamTableId
from pgtrickle.model.tier import Tier
from pgtrickle.scheduler.policy.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Candidate:
    """Everything the policy knows about one stream table.

    `always` claims that the result changes with time alone, so it is refreshed even without changes;
    `compares`, that it reads a source whose changes only a refresh can detect. `data_timestamp` is the moment
    whose data it shows. `recent_durations` are those of the latest refreshes that had work, newest first;
    `is_behind` says that an alert was sent because they take longer than the interval. `is_gated` says that
    a gate before one of its sources is closed, which stops requested refreshes too.
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
