"""Watches publications: a warning and an alert when a subscriber falls behind, and when it has caught up."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from pgtrickle.catalog.alerts import alert
from pgtrickle.catalog.subscribers import (
    LagEpisode,
    find_subscribers,
    identify_published_tables,
    note_lag,
)
from pgtrickle.postgres.connection import Connection
from pgtrickle.scheduler.service.threshold_alerts import AlertLimits
from pgtrickle.scheduler.service.unit_refresh import RefreshEvent


def watch_publications(
    connection: Connection, limits: AlertLimits, on_event: Callable[[RefreshEvent], None]
) -> None:
    """Find subscribers, let published tables be refreshed, and report who is late."""
    row = connection.execute(
        "select exists (select from pg_publication) or exists (select from pgtrickle.pgt_subscribers)"
    ).fetchone()
    if row == (True,):
        find_subscribers(connection)
        identify_published_tables(connection)
        note_late_subscribers(connection, limits, on_event)


def note_late_subscribers(
    connection: Connection, limits: AlertLimits, on_event: Callable[[RefreshEvent], None]
) -> None:
    """Record which subscribers fell behind or caught up; send an alert and an event for each."""
    if limits.publication_lag is None:
        return
    with connection.transaction():
        found = note_lag(connection, limits.publication_lag)
        for episode in found:
            facts = {
                "pgt_id": episode.table,
                "slot": episode.slot,
                "slot_state": episode.slot_state,
                "lag_bytes": episode.lag_bytes,
                "limit": limits.publication_lag,
            }
            if episode.late_since is None:
                alert(connection, "publication_lag", **facts)
            else:
                alert(connection, "publication_lag_resolved", **facts, late_since=episode.late_since)
    for episode in found:
        on_event(_event(episode))


def _event(episode: LagEpisode) -> RefreshEvent:
    now = datetime.now(UTC)
    if episode.late_since is not None:
        ended = "is gone" if episode.slot_state == "missing" else "has caught up"
        return RefreshEvent(episode.name, now, note=f"the subscriber with slot {episode.slot} {ended}")
    if episode.slot_state == "lost":
        note = (
            f"the server has removed log that the subscriber with slot {episode.slot} needs; drop its"
            " subscription and create it again"
        )
    else:
        note = f"the subscriber with slot {episode.slot} is {episode.lag_bytes:,} bytes of log behind"
        if episode.slot_state == "inactive":
            note += " and not connected"
    return RefreshEvent(episode.name, now, note=note, is_warning=True)
