"""Alerts when data is stale and when change buffers grow: once when an episode begins, once when it ends."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from pgtrickle.catalog.alerts import alert
from pgtrickle.model.limit_settings import (
    BUFFER_GROWTH_LIMIT,
    MAX_SLOT_WAL_MB,
    PUBLICATION_LAG_WARN_LSN,
    SLOT_LAG_WARNING_THRESHOLD_MB,
    STALE_AFTER,
)
from pgtrickle.model.settings import Settings
from pgtrickle.model.stream_table import StreamTableId
from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.rows import rows_as
from pgtrickle.postgres.statements import load
from pgtrickle.scheduler.policy.definitions import Definitions
from pgtrickle.scheduler.policy.staleness import is_stale


@dataclass(frozen=True, slots=True)
class AlertLimits:
    """How long a change may wait beyond its schedule, in seconds, and how many bytes a buffer may have.

    `publication_lag` is how many bytes of log a subscriber may be behind. 0 and None send no alert. The last
    two limit how many megabytes of log the slot of WAL capture holds back.
    """

    stale_after: float = STALE_AFTER.default
    buffer_growth: int | None = BUFFER_GROWTH_LIMIT.default
    publication_lag: int | None = PUBLICATION_LAG_WARN_LSN.default
    slot_lag_warning_mb: int = SLOT_LAG_WARNING_THRESHOLD_MB.default
    max_slot_wal_mb: int = MAX_SLOT_WAL_MB.default


def alert_limits(settings: Settings) -> AlertLimits:
    """The limits that the settings of a process contain."""
    return AlertLimits(
        settings.stale_after,
        settings.buffer_growth_limit,
        settings.publication_lag_warn_lsn,
        settings.slot_lag_warning_threshold_mb,
        settings.max_slot_wal_mb,
    )


@dataclass(frozen=True, slots=True)
class _TableAge:
    id: StreamTableId
    shown_until: datetime | None
    now: datetime
    is_stale: bool
    is_suspended: bool


def note_stale_tables(connection: Connection, definitions: Definitions, limits: AlertLimits) -> None:
    """Record which stream tables became stale or fresh again, and send an alert for each."""
    if not limits.stale_after:
        return
    ages = rows_as(_TableAge, connection.execute(load("pgtrickle.catalog", "sql/queries/table_ages.sql")))
    stale = {age.id for age in ages if _is_stale(age, definitions, timedelta(seconds=limits.stale_after))}
    known = {age.id for age in ages if age.is_stale}
    if stale == known:
        return
    with connection.transaction():
        changed = connection.execute(
            load("pgtrickle.catalog", "sql/queries/note_stale.sql"),
            {"begun": list(stale - known), "ended": list(known - stale)},
        ).fetchall()
        shown = {age.id: (age.now - age.shown_until) for age in ages if age.shown_until}
        for table, schedule, since in changed:
            if since is None:
                seconds = round(shown[table].total_seconds(), 3)
                alert(connection, "stale_data", pgt_id=table, schedule=schedule, staleness_seconds=seconds)
            else:
                alert(connection, "stale_data_resolved", pgt_id=table, schedule=schedule, stale_since=since)


def note_buffer_sizes(connection: Connection, limits: AlertLimits) -> None:
    """Record whose change buffers became large or small again, and send an alert for each."""
    if limits.buffer_growth is None:
        return
    with connection.transaction():
        changed = connection.execute(
            load("pgtrickle.catalog", "sql/queries/note_buffers.sql"), {"limit": limits.buffer_growth}
        ).fetchall()
        for source, size, since, slowest in changed:
            facts = {"source": source, "bytes": size, "limit": limits.buffer_growth}
            if since is None:
                alert(connection, "buffer_growth_warning", **facts, slowest_readers=slowest)
            else:
                alert(connection, "buffer_growth_resolved", **facts, large_since=since)


def _is_stale(age: _TableAge, definitions: Definitions, limit: timedelta) -> bool:
    table = definitions.tables.get(age.id)
    if table is None or table.is_gated or age.is_suspended or age.shown_until is None:
        return False
    return is_stale(
        definitions.schedules[age.id],
        table.asked.tier,
        age.shown_until,
        age.now,
        limit,
        was_stale=age.is_stale,
    )
