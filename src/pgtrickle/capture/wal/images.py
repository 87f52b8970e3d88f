"""Turns decoded messages into change rows of sources: old images with weight -1, new ones with +1.

A change that cannot be followed exactly leaves the marker of a truncation (weight 0), so that the readers of
the source read all rows again. This happens if the relation had other columns than now, or if its replica
identity did not contain every column that is captured.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from pgtrickle.capture.wal.pgoutput import Delete, Insert, Relation, Tuple, Unchanged, Update, Value

MARKER: Final = 0


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a relation as the catalog has it now."""

    name: bytes
    type: int


@dataclass(frozen=True, slots=True, eq=False)
class CapturedSource:
    """A source that is captured from the log, for transactions that commit between two positions.

    `trees` are the relations that hold its rows, each with all columns that `pgoutput` sends of it.
    """

    id: int
    buffer: int
    columns: tuple[tuple[int, bytes], ...]
    """The number and the name of each captured column."""
    trees: Mapping[int, tuple[Column, ...]]
    since: int
    until: int | None = None

    def takes(self, commit_lsn: int) -> bool:
        """Whether the changes of a transaction come from the log: triggers captured all others."""
        return self.since <= commit_lsn and (self.until is None or commit_lsn < self.until)


class ChangeRow(NamedTuple):
    """A change of a source: the values of its captured columns, none for a marker."""

    source: CapturedSource
    weight: int
    values: tuple[bytes | None, ...] = ()


@dataclass(frozen=True, slots=True)
class _Reading:
    """How the rows of a relation become rows of a source; `places` is None if they cannot."""

    source: CapturedSource
    places: tuple[int, ...] | None
    is_identified: bool = False


@dataclass(slots=True)
class Images:
    """Knows the sources, and the relations that the stream has described so far."""

    sources: tuple[CapturedSource, ...]
    _readings: dict[int, list[_Reading]] = field(default_factory=dict)

    def describe(self, relation: Relation) -> None:
        """Take note of the columns of a relation, which hold until it is described again."""
        self._readings[relation.id] = [
            _reading(source, relation) for source in self.sources if relation.id in source.trees
        ]

    def insert(self, change: Insert, commit_lsn: int) -> Iterable[ChangeRow]:
        """The change rows of an inserted row."""
        return [
            _row(reading, 1, change.new)
            for reading in self._readings.get(change.relation, ())
            if reading.source.takes(commit_lsn)
        ]

    def delete(self, change: Delete, commit_lsn: int) -> Iterator[ChangeRow]:
        """The change rows of a deleted row."""
        for reading in self._taking(change.relation, commit_lsn):
            yield (
                _row(reading, -1, change.old) if reading.is_identified else ChangeRow(reading.source, MARKER)
            )

    def update(self, change: Update, commit_lsn: int) -> Iterator[ChangeRow]:
        """The change rows of an updated row: none if no captured column can have changed."""
        for reading in self._taking(change.relation, commit_lsn):
            if not reading.is_identified:
                yield ChangeRow(reading.source, MARKER)
            elif change.old is not None:
                yield _row(reading, -1, change.old)
                yield _row(reading, 1, _completed(change.new, change.old))

    def truncate(self, relations: tuple[int, ...], commit_lsn: int) -> Iterator[ChangeRow]:
        """A marker for each source that lost the rows of a relation."""
        for source in self.sources:
            if source.takes(commit_lsn) and not source.trees.keys().isdisjoint(relations):
                yield ChangeRow(source, MARKER)

    def _taking(self, relation: int, commit_lsn: int) -> Iterator[_Reading]:
        for reading in self._readings.get(relation, ()):
            if reading.source.takes(commit_lsn):
                yield reading


def _reading(source: CapturedSource, relation: Relation) -> _Reading:
    described = tuple(Column(column.name, column.type) for column in relation.columns)
    numbers = {column.name: place for place, column in enumerate(relation.columns)}
    # the order tells columns apart that have exchanged their names
    if described != source.trees[relation.id] or any(name not in numbers for _, name in source.columns):
        return _Reading(source, None)
    places = tuple(numbers[name] for _, name in source.columns)
    return _Reading(source, places, all(relation.columns[place].is_key for place in places))


def _row(reading: _Reading, weight: int, row: Tuple) -> ChangeRow:
    if reading.places is None:
        return ChangeRow(reading.source, MARKER)
    values = [value for place in reading.places if (value := row[place]) is not Unchanged.TOAST]
    if len(values) < len(reading.places):
        return ChangeRow(reading.source, MARKER)
    return ChangeRow(reading.source, weight, tuple(values))


def _completed(new: Tuple, old: Tuple) -> Tuple:
    """The new row, with the unchanged values that only the old one contains."""
    if Unchanged.TOAST not in new:
        return new
    return tuple(_known(value, before) for value, before in zip(new, old, strict=True))


def _known(value: Value, before: Value) -> Value:
    return before if value is Unchanged.TOAST else value
