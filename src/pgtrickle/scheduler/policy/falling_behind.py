"""Stream tables whose refreshes take longer than their interval: noted once when it begins and ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgtrickle.model.stream_table import StreamTableId
from pgtrickle.scheduler.policy.candidate import Candidate
from pgtrickle.scheduler.policy.pacing import STRETCH, interval, typical_duration


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


def _takes_too_long(candidate: Candidate, margin: float) -> bool:
    asked = interval(candidate)
    if asked is None:
        return False
    typical = typical_duration(candidate)
    return typical is not None and typical * margin > asked
