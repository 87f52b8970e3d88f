"""Finds stream tables whose refreshes take longer than their interval: when that begins and when it ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgtrickle.model.stream_table import StreamTableId
from pgtrickle.scheduler.policy.candidate import Candidate
from pgtrickle.scheduler.policy.pacing import STRETCH, interval, typical_duration


@dataclass(frozen=True, slots=True)
class Episodes:
    """The stream tables that began to fall behind, and those that caught up."""

    begun: tuple[StreamTableId, ...]
    ended: tuple[StreamTableId, ...]


def episodes(candidates: Sequence[Candidate]) -> Episodes:
    """What has changed since the last call.

    An episode begins when a refresh typically takes longer than the interval, and ends when the interval is
    kept again without stretching it. Nothing is reported in between, so each alert is sent once.
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
