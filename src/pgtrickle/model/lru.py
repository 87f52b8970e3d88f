"""A map with a limit: when it is full, the least recently used entry goes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Entry = TypeVar("Entry")


class LruCache(Generic[Key, Entry]):
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
        """The entry, which then is the latest used."""
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
        """Hold the entry as the latest used."""
        with self._lock:
            self._entries[key] = entry
            self._entries.move_to_end(key)
            while len(self._entries) > self._limit:
                self._entries.popitem(last=False)
                # what was never held was not driven out
                self.evictions += self._limit > 0

    def keys(self) -> tuple[Key, ...]:
        """The keys, the latest used last."""
        with self._lock:
            return tuple(self._entries)

    def drop(self, key: Key) -> None:
        """Forget one entry, if it is there."""
        with self._lock:
            self._entries.pop(key, None)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()
