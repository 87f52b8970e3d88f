"""A cache that evicts the least recently used entry when it is full."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Entry = TypeVar("Entry")


class LruCache(Generic[Key, Entry]):
    """A thread-safe LRU cache. With a limit of zero it stores nothing."""

    def __init__(self, limit: int) -> None:
        if limit < 0:
            raise ValueError(f"a cache cannot hold {limit} entries")
        self._limit = limit
        self._entries: OrderedDict[Key, Entry] = OrderedDict()
        self._lock = threading.Lock()
        self.evictions = 0

    def __len__(self) -> int:
        with self._lock:
            return len(self._entries)

    def get(self, key: Key) -> Entry | None:
        """The entry, which becomes the most recently used."""
        with self._lock:
            if key not in self._entries:
                return None
            self._entries.move_to_end(key)
            return self._entries[key]

    def peek(self, key: Key) -> Entry | None:
        """The entry, without marking it as used."""
        with self._lock:
            return self._entries.get(key)

    def put(self, key: Key, entry: Entry) -> None:
        """Store an entry as the most recently used."""
        with self._lock:
            self._entries[key] = entry
            self._entries.move_to_end(key)
            while len(self._entries) > self._limit:
                self._entries.popitem(last=False)
                # a cache without room never evicts
                self.evictions += self._limit > 0

    def keys(self) -> tuple[Key, ...]:
        """The keys, the most recently used last."""
        with self._lock:
            return tuple(self._entries)

    def drop(self, key: Key) -> None:
        """Remove one entry if it exists."""
        with self._lock:
            self._entries.pop(key, None)

    def clear(self) -> None:
        """Remove all entries."""
        with self._lock:
            self._entries.clear()
