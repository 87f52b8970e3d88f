"""What one poll of the database found to be new."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from pgtrickle.catalog.identity import Installation
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.stream_table import RelationId, StreamTableId


@dataclass(frozen=True, slots=True)
class Tick:
    """What one poll found. `touched` gives the transactions that wrote to a source."""

    now: datetime
    snapshot: Frontier
    redefined: frozenset[StreamTableId]
    is_all_redefined: bool
    touched: Mapping[RelationId, tuple[int, ...]]
    requested: frozenset[StreamTableId]
    refreshed_views: frozenset[StreamTableId]
    has_comparisons: bool = False
    has_previews: bool = False
    is_draining: bool = False
    is_enabled: bool = True
    cache_generation: int = 0
    installation: Installation | None = None

    @property
    def has_news(self) -> bool:
        """Whether anything happened in the database since the last poll."""
        return bool(
            self.touched
            or self.redefined
            or self.is_all_redefined
            or self.requested
            or self.refreshed_views
            or self.has_comparisons
            or self.has_previews
        )
