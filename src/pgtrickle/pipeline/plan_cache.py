"""The plans of small programs. A plan serves one run at a time, which takes it out of the cache."""

from __future__ import annotations

import random
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from pgtrickle.pipeline.jvm.cached_plan import CachedPlan

HEAP_PER_PLAN: Final = 4 << 20
"""One plan is cached for each of these many bytes of the JVM's heap; a plan takes 0.5 to 1 MB."""
_MAX_BYTES: Final = 4 << 20
"""Programs with larger inputs are not cached: their rows would stay in memory with the plan."""

PlanKey = tuple[object, ...]


def plan_key(spark_sql: str, inputs: Mapping[str, pa.Table]) -> PlanKey | None:
    """The key of a plan; None if the program is not worth caching."""
    if not inputs or sum(rows.nbytes for rows in inputs.values()) > _MAX_BYTES:
        return None
    return (spark_sql, *((name, rows.schema) for name, rows in inputs.items()))


@dataclass(slots=True)
class _Entry:
    """The plans of one program that nobody uses at the moment; or that it always runs as a job."""

    is_cacheable: bool = True
    idle: list[CachedPlan] = field(default_factory=list)


@dataclass(slots=True)
class PlanCache:
    """At most `most` plans. Safe to use from many threads."""

    most: int
    _entries: dict[PlanKey, _Entry] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def for_heap(cls, heap_bytes: int) -> PlanCache:
        """As many plans as a heap of this size can hold."""
        return cls(max(1, heap_bytes // HEAP_PER_PLAN))

    def is_cacheable(self, key: PlanKey) -> bool:
        """Whether the program may have a plan here; not if it always runs as a job."""
        with self._lock:
            entry = self._entries.get(key)
            return entry is None or entry.is_cacheable

    def take(self, key: PlanKey) -> CachedPlan | None:
        """A plan that nobody uses, if there is one; the caller may give it back."""
        with self._lock:
            entry = self._entries.get(key)
            return entry.idle.pop() if entry and entry.idle else None

    def give_back(self, key: PlanKey, plan: CachedPlan) -> None:
        """Keep a plan for the next run, and drop others if there are too many."""
        with self._lock:
            self._entries.setdefault(key, _Entry()).idle.append(plan)
            count = sum(max(1, len(entry.idle)) for entry in self._entries.values())
            while count > self.most:
                # at random: stream tables take turns, so the least recently used plan is the next one needed
                gone = self._entries.pop(random.choice(list(self._entries)))
                count -= max(1, len(gone.idle))

    def note_uncacheable(self, key: PlanKey) -> bool:
        """Have a program run as a job from now on; whether it is the first of all."""
        with self._lock:
            is_first = all(entry.is_cacheable for entry in self._entries.values())
            self._entries[key] = _Entry(is_cacheable=False)
            return is_first

    def clear(self) -> None:
        """Drop all plans."""
        with self._lock:
            self._entries.clear()

    def __len__(self) -> int:
        with self._lock:
            return sum(len(entry.idle) for entry in self._entries.values())
