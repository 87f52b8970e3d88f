"""Limits how many rows the driver holds, counted while they arrive.

All refreshes of a process share one limit. A refresh that would exceed it drops its last read and continues
in Spark's tasks, which read and write in portions.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

import pyarrow as pa

SHARE: Final = 8
"""The default limit is this part of the heap of Spark's driver: each row is copied several times."""
LEAST: Final = 16 << 20
MOST: Final = 1 << 30
"""A refresh never holds more than this: a text column has at most two gigabytes."""
FREE: Final = 1 << 20
"""A refresh may always hold this much."""
PER_VALUE: Final = 16
"""The overhead of a value in a row of Spark, in bytes."""


Batches = Generator[pa.RecordBatch, None, None]


class TooMuch(Exception):
    """A refresh reaches more rows than the driver may hold."""


@dataclass(slots=True)
class Memory:
    """The limit that the refreshes of a process share. Safe to use from many threads."""

    limit: Callable[[], int]
    peak: int = 0
    """The most bytes that were held so far."""
    _held: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def share(self) -> int:
        """How many bytes one refresh may hold; a large one leaves room for others."""
        return min(MOST, self.limit() // 2)

    @property
    def held(self) -> int:
        """How many bytes all refreshes hold now."""
        return self._held

    def holding(self, *, max_rows: int | None = None) -> Holding:
        """The part of one refresh, with a limit on its rows too if `max_rows` is given."""
        return Holding(self, max_rows)

    def _take(self, size: int, own: int) -> None:
        with self._lock:
            share, free = self.share, self.limit() - self._held
            if own + size > FREE and (own + size > share or size > free):
                raise TooMuch(f"more than {megabytes(max(FREE, min(share, own + free)))}")
            self._held += size
            self.peak = max(self.peak, self._held)

    def _give_back(self, size: int) -> None:
        with self._lock:
            self._held -= size


@dataclass(slots=True)
class Holding:
    """What one refresh holds; released at the end."""

    memory: Memory
    max_rows: int | None = None
    rows: int = 0
    size: int = 0

    def add(self, part: pa.RecordBatch | pa.Table, values: int | None = None) -> None:
        """Count rows that have arrived; raise TooMuch if they are too many.

        `values` is the number of columns that count, if not all do.
        """
        rows = self.rows + part.num_rows
        if self.max_rows is not None and rows > self.max_rows:
            raise TooMuch(f"more than {self.max_rows:,} rows")
        size = cost(part, values)
        self.memory._take(size, self.size)
        self.rows, self.size = rows, self.size + size

    def table(self, batches: Batches, schema: pa.Schema, values: int | None = None) -> pa.Table:
        """The batches as a table, counted as they arrive; if they are too many, none is held."""
        rows, size = self.rows, self.size
        found = []
        try:
            # a COPY that is broken off must end before its connection can be used again
            with closing(batches):
                for batch in batches:
                    self.add(batch, values)
                    found.append(batch)
        except BaseException:
            self._shrink(rows, size)
            raise
        return pa.Table.from_batches(found, schema)

    @property
    def left(self) -> int:
        """How many more bytes this refresh may hold."""
        free = self.memory.limit() - self.memory.held
        return max(FREE, min(self.memory.share - self.size, free))

    def release(self) -> None:
        """Release everything."""
        self._shrink(0, 0)

    def _shrink(self, rows: int, size: int) -> None:
        self.memory._give_back(self.size - size)
        self.rows, self.size = rows, size

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def cost(part: pa.RecordBatch | pa.Table, values: int | None = None) -> int:
    """The memory that rows take as Arrow data and as rows of Spark."""
    width: int = part.num_columns if values is None else values
    size: int = part.nbytes
    return size + PER_VALUE * width * int(part.num_rows)


def megabytes(size: int) -> str:
    """A size in megabytes, as text."""
    return f"{size / (1 << 20):,.0f} MB"
