"""Which stream tables have series of their own: those that matter most. The others are `other`.

A table matters by the time its refreshes take and, more, by their failures, both counted less the longer ago
they were. As long as there is room, every table has its own series. A table that comes later takes the place
of one that matters clearly less; the series of that one end. So no counter ever decreases.
"""

from __future__ import annotations

from collections.abc import Collection
from heapq import nlargest
from typing import Final

from pgtrickle.model.names import RelationName

OTHER: Final = "other"
FAILURE_SECONDS: Final = 60.0
"""A failure counts as much as a refresh that takes this long."""
_FADING: Final = 0.5
"""What is left of earlier weight after each choice."""
_INCUMBENT: Final = 2.0
"""A newcomer must matter more than a table with series by this factor."""


class TableLabels:
    """The labels of stream tables, at most `limit` of them besides `other`. The caller locks."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._labels: dict[RelationName, str] = {}
        self._weights: dict[RelationName, float] = {}

    @property
    def shown(self) -> Collection[RelationName]:
        """The stream tables with series of their own."""
        return self._labels.keys()

    def label(self, table: RelationName, seconds: float, *, is_failure: bool = False) -> str:
        """The label of a table of which a refresh took this long or failed."""
        weight = FAILURE_SECONDS if is_failure else seconds
        self._weights[table] = self._weights.get(table, 0.0) + weight
        label = self._labels.get(table)
        if label is not None:
            return label
        if len(self._labels) < self.limit:
            return self._labels.setdefault(table, str(table))
        return OTHER

    def choose(self, existing: Collection[RelationName]) -> set[str]:
        """Choose again which tables have series; returns the labels whose series end."""
        self._weights = {t: w * _FADING for t, w in self._weights.items() if t in existing and w > 1e-6}
        kept = {table for table in self._labels if table in existing}

        def weight(table: RelationName) -> float:
            return self._weights.get(table, 0.0) * (_INCUMBENT if table in kept else 1.0)

        if len(kept | self._weights.keys()) > self.limit:
            # tables that have series come first among equals
            kept = set(nlargest(self.limit, sorted(kept) + sorted(self._weights.keys() - kept), key=weight))
        else:
            kept |= self._weights.keys()
        ended = {label for table, label in self._labels.items() if table not in kept}
        self._labels = {table: str(table) for table in kept}
        return ended
