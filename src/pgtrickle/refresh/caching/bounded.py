"""A map with a limited number of entries; the least recently used one is removed first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Entry = TypeVar("Entry")


class Bounded(Generic[Key, Entry]):
    """Safe to use from many threads. With a limit of zero it holds nothing."""

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
        """The entry, which becomes the most recently used one."""
        with self._lock:
            if key not in self._entries:
                return None
            self._entries.move_to_end(key)
            return self._entries[key]

    def peek(self, key: Key) -> Entry | None:
        """The entry, without counting as a use."""
        with self._lock:
            return self._entries.get(key)

    def put(self, key: Key, entry: Entry) -> None:
        """Add the entry as the most recently used one."""
        with self._lock:
            self._entries[key] = entry
            self._entries.move_to_end(key)
            while len(self._entries) > self._limit:
                self._entries.popitem(last=False)
                # with a limit of zero nothing was held, so nothing is evicted
                self.evictions += self._limit > 0

    def drop(self, key: Key) -> None:
        """Remove an entry, if there is one."""
        with self._lock:
            self._entries.pop(key, None)

    def clear(self) -> None:
        """Remove all entries."""
        with self._lock:
            self._entries.clear()
