"""Stream tables whose refreshes take longer than their interval: noted once when it begins and ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgtrickle.catalog.alerts import alert
from pgtrickle.model.stream_table import StreamTableId
from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.statements import load
from pgtrickle.scheduler.candidate import Candidate
from pgtrickle.scheduler.turn import STRETCH, interval, typical_duration


@dataclass(frozen=True, slots=True)
class Episodes:
    """Who has begun to fall behind, and who keeps up again."""

    begun: tuple[StreamTableId, ...]
    ended: tuple[StreamTableId, ...]


def episodes(candidates: Sequence[Candidate]) -> Episodes:
    """What changed since it was last noted.

    It begins when a refresh typically takes longer than the interval, and ends when the interval is
    kept again without stretching it; between the two nothing changes, so that nobody is told twice.
    """
    begun = tuple(c.id for c in candidates if not c.is_behind and _takes_too_long(c, 1.0))
    ended = tuple(c.id for c in candidates if c.is_behind and not _takes_too_long(c, STRETCH))
    return Episodes(begun, ended)


def note_episodes(connection: Connection, found: Episodes) -> None:
    """Write them down and tell whoever listens; of several sidecars only one does."""
    if not found.begun and not found.ended:
        return
    with connection.transaction():
        rows = connection.execute(
            load("pgtrickle.catalog", "sql/note_behind.sql"),
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


def _takes_too_long(candidate: Candidate, margin: float) -> bool:
    asked = interval(candidate)
    if asked is None:
        return False
    typical = typical_duration(candidate)
    return typical is not None and typical * margin > asked
