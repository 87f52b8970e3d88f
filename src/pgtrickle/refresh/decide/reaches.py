"""Remembers programs that reached too many rows, so that their next refresh need not read up to the limit.

Only in the memory of the process: it costs a few reads to learn it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Final

from pgtrickle.model.lru import LruCache
from pgtrickle.model.stream_table import StreamTableId
from pgtrickle.plan.program import Program
from pgtrickle.plan.reads import Read

SURE_AFTER: Final = 3
"""After this many refreshes in a row that reached too many rows at one read, the next is expected to."""
TRY_AGAIN_AFTER: Final = 10
"""After this many refreshes that relied on the expectation, one measures again."""
MAX_PROGRAMS: Final = 10_000

_Key = tuple[StreamTableId, str]


@dataclass(frozen=True, slots=True)
class Reach:
    """The read at which a program reached too many rows (None: its result), how often in a row, and why."""

    read: str | None
    reason: str
    times: int = 1
    relied_on: int = 0

    def before(self, reads: Sequence[Read]) -> tuple[Read, ...]:
        """The reads that come before it."""
        return tuple(takewhile(lambda read: read.name != self.read, reads))


@dataclass(slots=True)
class Reaches:
    """The programs of one process. Safe to use from many threads."""

    _known: LruCache[_Key, Reach] = field(default_factory=lambda: LruCache(MAX_PROGRAMS))

    def is_expected(self, table: StreamTableId, program: Program) -> bool:
        """Whether the program will probably reach too many rows."""
        known = self._known.peek(_key(table, program))
        return known is not None and known.times >= SURE_AFTER and known.relied_on < TRY_AGAIN_AFTER

    def expectation(self, table: StreamTableId, program: Program) -> Reach | None:
        """Where the program will probably reach too many rows; None now and then, to measure it again."""
        known = self._known.get(_key(table, program))
        if known is None or not self.is_expected(table, program):
            return None
        self._known.put(_key(table, program), replace(known, relied_on=known.relied_on + 1))
        return known

    def note_too_much(self, table: StreamTableId, program: Program, read: str | None, reason: str) -> None:
        """Note that the program reached too many rows at this read."""
        known = self._known.get(_key(table, program))
        times = known.times + 1 if known is not None and known.read == read else 1
        self._known.put(_key(table, program), Reach(read, reason, times))

    def note_little(self, table: StreamTableId, program: Program) -> None:
        """Note that the driver could hold everything."""
        self._known.drop(_key(table, program))

    def clear(self) -> None:
        """Forget everything."""
        self._known.clear()


def _key(table: StreamTableId, program: Program) -> _Key:
    return table, program.spark_sql
