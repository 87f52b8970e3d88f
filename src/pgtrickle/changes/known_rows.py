"""Takes rows that an earlier read of the same source has found from there, instead of reading them again.

Two reads of one source often ask by the same column: for the keys of the window, and later for the keys that
those rows led to. The later one needs all of its rows, because they give keys to others, but PostgreSQL is
asked only for the keys that nobody has asked for yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from pgtrickle.changes.keys import LookupKeys, are_many
from pgtrickle.model.carrier import BIGINT, INT, SMALLINT
from pgtrickle.plan.reads import AGAIN, KeyColumns, Lookup, Read, ReadKind

_NEW_KEYS: Final = "keys that no read has asked for"
_INTEGERS: Final = frozenset({SMALLINT, INT, BIGINT})


@dataclass(frozen=True, slots=True)
class KnownRows:
    """The rows of a read that are known, and the read of the others; None if there are no others."""

    rows: pa.Table
    others: Read | None
    keys: LookupKeys

    def with_others(self, others: pa.Table | None) -> pa.Table:
        """All rows of the read, after the others were read."""
        if others is None or not others.num_rows:
            return self.rows
        if AGAIN not in others.column_names:
            position = self.rows.schema.get_field_index(AGAIN)
            others = others.add_column(position, AGAIN, pa.repeat(pa.scalar(value=False), others.num_rows))
        return pa.concat_tables([self.rows, others.select(self.rows.column_names)])


def known_rows(read: Read, before: Sequence[Read], keys: LookupKeys) -> KnownRows | None:
    """What the reads `before` this one know of its rows; None if they know nothing that helps."""
    if read.kind is not ReadKind.ROWS or len(read.lookups) != 1 or not read.earlier:
        return None
    (wanted,) = read.lookups
    if not _is_plain(wanted, read, keys):
        return None
    missing = _keys_of(wanted, keys.tables)
    found, others = [], []
    for lookup in read.earlier:
        reader = _reader(lookup, read, before)
        if reader is None or lookup.columns != wanted.columns or not _is_plain(lookup, read, keys):
            others.append(lookup)
            continue
        asked = _keys_of(lookup, keys.tables)
        rows = keys.tables[reader.name]
        found.append(
            _with_mark(rows.filter(_is_in(rows.column(wanted.keys[0].name), _common(missing, asked))))
        )
        missing = missing.filter(pc.invert(_is_in(missing, asked)))
    if not found:
        return None
    rows = pa.concat_tables([part.select(found[0].column_names) for part in found])
    if not len(missing):
        return KnownRows(rows, None, keys)
    column = wanted.keys[0].name
    rest = replace(
        read,
        lookups=(replace(wanted, providers=(KeyColumns(_NEW_KEYS, (column,)),)),),
        earlier=tuple(others),
    )
    return KnownRows(rows, rest, LookupKeys({**keys.tables, _NEW_KEYS: pa.table({column: missing})}))


def _is_plain(lookup: Lookup, read: Read, keys: LookupKeys) -> bool:
    """Whether a lookup has one column of whole numbers, which is read too, and not too many keys."""
    if len(lookup.keys) != 1 or lookup.comparison is not None or lookup.is_null_safe:
        return False
    (key,) = lookup.keys
    is_read = any(field.name == key.name for field in read.fields)
    if not is_read or key.carrier.form not in _INTEGERS or key.carrier.carry != "({})":
        return False
    if not keys.are_held(lookup) or are_many(lookup, keys.tables):
        return False
    return all(
        pa.types.is_integer(keys.tables[p.read].schema.field(p.fields[0]).type) for p in lookup.providers
    )


def _reader(lookup: Lookup, read: Read, before: Sequence[Read]) -> Read | None:
    """The read that has found the rows of a lookup of the same scan."""
    same = (r for r in before if r.lookups == (lookup,) and _scanned(r) == _scanned(read))
    return next(same, None)


def _scanned(read: Read) -> Read:
    return replace(read, name="", lookups=(), earlier=())


def _keys_of(lookup: Lookup, tables: Mapping[str, pa.Table]) -> pa.Array:
    chunks = [
        chunk.cast(pa.int64())
        for provider in lookup.providers
        for chunk in tables[provider.read].column(provider.fields[0]).chunks
    ]
    return pc.unique(pa.chunked_array(chunks, pa.int64())).drop_null()


def _common(keys: pa.Array, others: pa.Array) -> pa.Array:
    return keys.filter(_is_in(keys, others))


def _is_in(column: pa.Array | pa.ChunkedArray, keys: pa.Array) -> pa.Array | pa.ChunkedArray:
    return pc.is_in(column.cast(pa.int64()), keys)


def _with_mark(rows: pa.Table) -> pa.Table:
    """The rows, marked as ones that an earlier read has."""
    if AGAIN in rows.column_names:
        rows = rows.drop_columns([AGAIN])
    weight = rows.num_columns - 1
    return rows.add_column(weight, AGAIN, pa.repeat(pa.scalar(value=True), rows.num_rows))
