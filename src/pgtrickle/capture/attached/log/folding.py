"""Folds decoded messages into what became of each row of a table since our copy was written.

The log has the key of an old row, or all of its values if the replica identity is full. With a key, the last
change of each row counts: its old values are in the copy. Without one, old and new rows are a multiset.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from pgtrickle.capture.wal.buffer_rows import escape
from pgtrickle.capture.wal.pgoutput import Delete, Insert, Relation, Tuple, Unchanged, Update, Value
from pgtrickle.model.attached import AttachedTable

ROW_BYTES: Final = 300
"""What a row takes in memory besides its values, roughly."""
_NULL: Final = b"\\N"

Key = tuple[bytes, ...]


class LostTrack(Exception):
    """The changes of a table cannot be followed any further: it has to be compared."""


@dataclass(frozen=True, slots=True)
class _State:
    """A row as it is now; `values` is None if it is gone.

    `is_known` says whether the copy has a row with this key. Values that did not change, and are not in the
    log, are those of the row of the copy with the key `origin`.
    """

    is_known: bool
    values: Tuple | None = None
    origin: Key = ()


@dataclass(slots=True)
class Fold:
    """The changes of one table since they were last written to its copy."""

    table: AttachedTable
    size: int = 0
    _places: tuple[int, ...] | None = None
    _key_places: tuple[int, ...] = ()
    _rows: dict[Key, _State] = field(default_factory=dict)
    _images: list[bytes] = field(default_factory=list)

    @property
    def key(self) -> tuple[str, ...]:
        """The columns by which the log tells which row was changed; none if it has whole rows."""
        assert self.table.definition is not None
        return () if self.table.definition["is_full"] else tuple(self.table.definition["identity"])

    @property
    def is_empty(self) -> bool:
        """Whether nothing has changed."""
        return not self._rows and not self._images

    def describe(self, relation: Relation) -> None:
        """Take note of where the columns are in the rows that follow; raises if they are not what we know."""
        definition = self.table.definition
        assert definition is not None
        expected = {c["name"]: c["type_id"] for c in definition["columns"] if c["is_logged"]}
        found = {column.name.decode(): place for place, column in enumerate(relation.columns)}
        identity = {column.name.decode() for column in relation.columns if column.is_key}
        types = {column.name.decode(): column.type for column in relation.columns}
        if types != expected or identity != set(definition["identity"]) & set(expected):
            raise LostTrack
        self._places = tuple(found[name] for name in self.table.wanted)
        self._key_places = tuple(found[name] for name in self.key)

    def insert(self, change: Insert) -> None:
        """Take an inserted row."""
        if not self.key:
            self._image(1, change.new)
            return
        key = self._key(change.new)
        before = self._rows.get(key)
        if before is not None and before.values is not None:
            raise LostTrack
        self._set(key, _State(before is not None and before.is_known, self._values(change.new), key))

    def delete(self, change: Delete) -> None:
        """Take a deleted row."""
        if not self.key:
            self._image(-1, change.old)
            return
        self._remove(self._key(change.old))

    def update(self, change: Update) -> None:
        """Take an updated row. What did not change and is not in the log is what it was before."""
        if not self.key:
            if change.old is None:
                raise LostTrack
            self._image(-1, change.old)
            self._image(1, _completed(change.new, change.old))
            return
        new = change.new if change.old is None else _completed(change.new, change.old)
        new_key = self._key(new)
        old_key = new_key if change.old is None else self._key(change.old)
        before = self._rows.get(old_key)
        if before is not None and before.values is None:
            raise LostTrack
        values, origin = self._values(new), old_key
        if before is not None and before.values is not None:
            # what was kept before is kept still
            pairs = zip(values, before.values, strict=True)
            values = tuple(was if now is Unchanged.TOAST else now for now, was in pairs)
            origin = before.origin
        if old_key == new_key:
            self._set(new_key, _State(before is None or before.is_known, values, origin))
            return
        self._remove(old_key)
        there = self._rows.get(new_key)
        if there is not None and there.values is not None:
            raise LostTrack
        self._set(new_key, _State(there is not None and there.is_known, values, origin))

    def lines(self) -> Iterator[bytes]:
        """The changes as lines for COPY: of pg_temp.decoded_N with a key, else of pg_temp.incoming_N."""
        yield from self._images
        for key, state in self._rows.items():
            fields = [b"t" if state.is_known else b"f", b"t" if state.values is None else b"f"]
            values = state.values if state.values is not None else (None,) * len(self.table.wanted)
            kept = [place for place, value in enumerate(values, 1) if value is Unchanged.TOAST]
            fields.append(b"{%s}" % b",".join(b"%d" % place for place in kept))
            origin = state.origin if kept else (None,) * len(key)
            for part, other in zip(key, origin, strict=True):
                fields += [escape(part), _NULL if other is None else escape(other)]
            fields += [_text(value) for value in values]
            yield b"\t".join(fields) + b"\n"

    def columns(self) -> list[str]:
        """The columns of the lines."""
        values = [f"k{number}" for number in range(1, len(self.table.wanted) + 1)]
        if not self.key:
            return ["xid", "weight", *values]
        keys = [f"{side}{number}" for number in range(1, len(self.key) + 1) for side in "do"]
        return ["is_known", "is_gone", "kept", *keys, *values]

    def clear(self) -> None:
        """Forget what was written."""
        self._rows, self._images, self.size = {}, [], 0

    def _remove(self, key: Key) -> None:
        before = self._rows.get(key)
        if before is not None and before.values is None:
            raise LostTrack
        self._set(key, _State(before is None or before.is_known))

    def _set(self, key: Key, state: _State) -> None:
        if not state.is_known and state.values is None:
            # it came and went
            self._rows.pop(key, None)
            return
        self._rows[key] = state
        self.size += ROW_BYTES + sum(len(value) for value in state.values or () if isinstance(value, bytes))

    def _image(self, weight: int, row: Tuple) -> None:
        values = self._values(row)
        if Unchanged.TOAST in values:
            raise LostTrack
        line = b"\t".join([b"4", b"%d" % weight, *map(_text, values)]) + b"\n"
        self._images.append(line)
        self.size += ROW_BYTES + len(line)

    def _values(self, row: Tuple) -> Tuple:
        if self._places is None:
            raise LostTrack
        return tuple(row[place] for place in self._places)

    def _key(self, row: Tuple) -> Key:
        parts = tuple(row[place] for place in self._key_places)
        known = tuple(part for part in parts if isinstance(part, bytes))
        # a part of the key is never null
        if not parts or len(known) != len(parts):
            raise LostTrack
        return known


def _text(value: Value) -> bytes:
    return escape(value) if isinstance(value, bytes) else _NULL


def _completed(new: Tuple, old: Tuple) -> Tuple:
    """The new row, with the unchanged values that only the old one contains."""
    if Unchanged.TOAST not in new:
        return new
    pairs = zip(new, old, strict=True)
    return tuple(was if now is Unchanged.TOAST and isinstance(was, bytes) else now for now, was in pairs)
