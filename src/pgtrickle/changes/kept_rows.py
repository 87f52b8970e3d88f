"""Keeps the rows of small sources in memory for as long as the sources do not change.

Kept rows are valid at one frontier. A refresh that starts there and finds no change of the source may use
them, and afterwards they are valid at the frontier where that refresh ends.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pgtrickle.changes.keys import are_many
from pgtrickle.changes.memory import cost
from pgtrickle.model.carrier import BIGINT, INT, SMALLINT, STRING, Field, SparkType
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.source import Source, SourceKind
from pgtrickle.model.stream_table import RelationId, StreamTableId
from pgtrickle.plan.reads import AGAIN, Lookup, Read, ReadKind

MAX_ROWS: Final = 1_000
"""A source with more rows is looked up in PostgreSQL every time."""
MAX_BYTES: Final = 1 << 20
"""So is a source that takes more memory than this."""
MAX_KEPT: Final = 1_000
"""The most reads that are kept; the least recently used one is dropped first."""
MAX_KEPT_BYTES: Final = 64 << 20
"""The most memory for all of them."""

Moved = Callable[[Source], tuple[Frontier | None, Frontier | None]]
"""The frontiers between which a refresh has followed a source."""

Ask = Callable[[Read, int, int], pa.Table | None]
"""Reads at most this many rows from PostgreSQL; None if they have more than this many bytes."""

_Key = tuple[StreamTableId, Read]


@dataclass(slots=True)
class _Kept:
    rows: pa.Table
    frontier: Frontier


@dataclass(slots=True)
class KeptRows:
    """The rows that all stream tables of an engine keep."""

    _kept: OrderedDict[_Key, _Kept] = field(default_factory=OrderedDict)
    _too_large: set[RelationId] = field(default_factory=set)
    _size: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def whole(self, table: StreamTableId, read: Read, start: Frontier, ask: Ask) -> pa.Table | None:
        """All rows that a read could find at the frontier `start`; None if they are too many."""
        assert read.source is not None
        key, relation = (table, replace(read, name="", lookups=(), earlier=())), read.source.relation
        with self._lock:
            known = self._kept.get(key)
            if known is not None and known.frontier == start:
                self._kept.move_to_end(key)
                return known.rows
            if relation in self._too_large:
                return None
        rows = ask(key[1], MAX_ROWS + 1, MAX_BYTES)
        with self._lock:
            if rows is None or rows.num_rows > MAX_ROWS:
                self._too_large.add(relation)
                return None
            self._drop(key)
            self._kept[key] = _Kept(rows, start)
            self._size += cost(rows)
            while len(self._kept) > MAX_KEPT or self._size > MAX_KEPT_BYTES:
                self._drop(next(iter(self._kept)))
        return rows

    def advance(self, table: StreamTableId, changed: frozenset[RelationId], moved: Moved) -> None:
        """Move the rows of a table to the frontiers of its refresh; drop the sources that changed."""
        with self._lock:
            for key in [key for key in self._kept if key[0] == table]:
                source = key[1].source
                assert source is not None
                start, end = moved(source)
                if source.relation in changed or self._kept[key].frontier != start or end is None:
                    self._drop(key)
                else:
                    self._kept[key].frontier = end

    def __len__(self) -> int:
        with self._lock:
            return len(self._kept)

    def clear(self) -> None:
        """Drop the rows of all tables."""
        with self._lock:
            self._kept.clear()
            self._too_large.clear()
            self._size = 0

    def forget(self, table: StreamTableId) -> None:
        """Drop the rows of a table, because one of its sources was altered."""
        with self._lock:
            for key in [key for key in self._kept if key[0] == table]:
                self._drop(key)
            self._too_large.clear()

    def _drop(self, key: _Key) -> None:
        dropped = self._kept.pop(key, None)
        if dropped is not None:
            self._size -= cost(dropped.rows)


_COMPARED: Final[Mapping[SparkType, pa.DataType]] = {
    SMALLINT: pa.int16(),
    INT: pa.int32(),
    BIGINT: pa.int64(),
    STRING: pa.string(),
}
"""Carried forms that Arrow compares like PostgreSQL compares their values."""


def can_be_kept(read: Read, tables: Mapping[str, pa.Table]) -> bool:
    """Whether a read is of an unchanged source, with keys that Arrow compares like PostgreSQL."""
    if read.kind is not ReadKind.ROWS or read.is_changed or read.follows_clock or read.source is None:
        return False
    if read.source.kind is SourceKind.AUXILIARY or any(lookup.comparison for lookup in read.lookups):
        return False
    # PostgreSQL would not restrict rows by that many keys, and both must find the same
    if any(are_many(lookup, tables) for lookup in (*read.lookups, *read.earlier)):
        return False
    names = {field.name for field in read.fields}
    return all(
        key.name in names and key.carrier.equality and _forms(lookup, n, tables) <= {_form(key)}
        for lookup in (*read.lookups, *read.earlier)
        for n, key in enumerate(lookup.keys)
    )


def matching_rows(whole: pa.Table, read: Read, tables: Mapping[str, pa.Table]) -> pa.Table:
    """The rows that a read finds among all rows of its source."""
    rows = whole.filter(_any_of(whole, read.lookups, tables)) if read.lookups else whole
    if not read.earlier:
        return rows
    return rows.add_column(len(read.fields), AGAIN, _any_of(rows, read.earlier, tables))


def _any_of(rows: pa.Table, lookups: tuple[Lookup, ...], tables: Mapping[str, pa.Table]) -> Any:
    """For each row, whether one of the lookups finds it."""
    found: Any = pa.repeat(pa.scalar(value=False), rows.num_rows)
    for lookup in lookups:
        if not any(tables[provider.read].num_rows for provider in lookup.providers):
            continue
        is_found: Any = pa.repeat(pa.scalar(value=True), rows.num_rows)
        for position, key in enumerate(lookup.keys):
            is_found = pc.and_(is_found, _is_key(rows.column(key.name), lookup, position, tables))
        found = pc.or_(found, is_found)
    return found


def _is_key(column: pa.ChunkedArray, lookup: Lookup, position: int, tables: Mapping[str, pa.Table]) -> Any:
    chunks = [tables[p.read].column(p.fields[position]) for p in lookup.providers]
    values = pa.concat_arrays([chunk.combine_chunks() for chunk in chunks])
    return pc.is_in(column, values if lookup.is_null_safe else values.drop_null())


def _forms(lookup: Lookup, position: int, tables: Mapping[str, pa.Table]) -> set[pa.DataType | None]:
    return {tables[p.read].schema.field(p.fields[position]).type for p in lookup.providers}


def _form(key: Field) -> pa.DataType | None:
    return _COMPARED.get(key.carrier.form)
