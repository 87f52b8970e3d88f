"""Records which stream tables began to fall behind or caught up, and alerts once for each episode."""

from __future__ import annotations

from pgtrickle.catalog.alerts import alert
from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.statements import load
from pgtrickle.scheduler.policy.falling_behind import Episodes


def note_episodes(connection: Connection, found: Episodes) -> None:
    """Record the episodes and send the alerts; of several sidecars only one does."""
    if not found.begun and not found.ended:
        return
    with connection.transaction():
        rows = connection.execute(
            load("pgtrickle.catalog", "sql/queries/note_behind.sql"),
            {"begun": list(found.begun), "ended": list(found.ended)},
        ).fetchall()
        for number, schedule, milliseconds in rows:
            alert(
                connection,
                "scheduler_falling_behind",
                pgt_id=number,
                schedule=schedule,
                recent_ms=[round(duration) for duration in milliseconds],
            )
