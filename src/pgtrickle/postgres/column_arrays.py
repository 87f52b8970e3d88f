"""Reads a range of pages column by column: PostgreSQL aggregates each column, and NumPy decodes it at once.

One row that holds arrays costs the client next to nothing, where rows one by one cost it more than they cost
PostgreSQL. A number of fixed size arrives as an array in PostgreSQL's binary format, a text as all texts in
one and their lengths, a decimal as lines of text, which Arrow parses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
from psycopg import Connection, RawCursor, sql
from pyarrow import csv

ENCODINGS: Final = frozenset({"UTF8"})
"""Encodings of a database in which the length of a text is that of what we receive."""
NO_END: Final = (1 << 32) - 1
"""A page after the last one that a table can have."""

_FORMS: Final[dict[pa.DataType, str]] = {
    pa.bool_(): "?",
    pa.int16(): ">i2",
    pa.int32(): ">i4",
    pa.int64(): ">i8",
    pa.float32(): ">f4",
    pa.float64(): ">f8",
}
"""The elements of an array in PostgreSQL's binary format, for NumPy."""
_HEADER: Final = np.dtype(
    [("dimensions", ">i4"), ("nulls", ">i4"), ("type", ">u4"), ("size", ">i4"), ("first", ">i4")]
)


@dataclass(frozen=True, slots=True)
class PageRange:
    """Pages of a table from `low` to before `high`. The last range has no end: pages may have been added."""

    low: int
    high: int
    is_last: bool = False

    @property
    def condition(self) -> str:
        """The rows on these pages, as a condition over the alias `t`."""
        begin = f"t.ctid >= '({self.low},0)'::tid"
        return begin if self.is_last else f"{begin} and t.ctid < '({self.high},0)'::tid"


PAGES: Final = "t.ctid >= $1::tid and t.ctid < $2::tid"
"""The same condition with the range as parameters."""


class HasNulls(Exception):
    """An array contains nulls, so its elements have no fixed distance."""


@dataclass(slots=True)
class ColumnReader:
    """Reads ranges of the pages of one query. Its last column is the weight if it has one: 1 for every row.

    The query is SQL with `$1` and `$2` for the first `ctid` of a range and that after its last.
    """

    connection: Connection[Any]
    query: str
    schema: pa.Schema
    has_weight: bool
    _nullable: set[int] = field(default_factory=set)
    """Columns in which a null was found, so that the next ranges are asked for which rows have one."""

    def batches(self, pages: PageRange, step: int) -> Iterator[pa.RecordBatch]:
        """The rows on these pages, `step` pages at a time."""
        for first in range(pages.low, pages.high, step):
            after = min(pages.high, first + step)
            batch = self._read(first, NO_END if pages.is_last and after == pages.high else after)
            if batch is not None:
                yield batch

    def _read(self, first: int, after: int) -> pa.RecordBatch | None:
        while True:
            values = self._values(first, after)
            count = int.from_bytes(cast(bytes, values[0]))
            if not count:
                return None
            try:
                return pa.RecordBatch.from_arrays(list(self._columns(values[1:], count)), schema=self.schema)
            except HasNulls:
                # asked again, with the columns that have nulls known
                continue

    def _values(self, first: int, after: int) -> list[bytes | None]:
        statement = self._statement()
        with RawCursor(self.connection) as cursor:
            cursor.execute(
                statement.as_string(self.connection).encode(), (f"({first},0)", f"({after},0)"), binary=True
            )
            result = cursor.pgresult
            assert result is not None
            return [result.get_value(0, number) for number in range(result.nfields)]

    def _columns(self, values: Sequence[bytes | None], count: int) -> Iterator[pa.Array]:
        remaining, found_nulls = iter(values), False
        for number, column in enumerate(self._counted()):
            if column.type == pa.string():
                yield _texts(next(remaining), next(remaining), count)
            elif pa.types.is_decimal(column.type):
                yield _decimals(next(remaining), column.type)
            elif number in self._nullable:
                yield _with_nulls(next(remaining), next(remaining), column.type, count)
            else:
                value = next(remaining)
                if _has_nulls(value):
                    self._nullable.add(number)
                    found_nulls = True
                else:
                    yield _numbers(value, column.type)
        if found_nulls:
            raise HasNulls
        if self.has_weight:
            yield pa.array(np.ones(count, np.int64))

    def _counted(self) -> list[pa.Field]:
        """The columns that PostgreSQL has to aggregate."""
        return list(self.schema)[:-1] if self.has_weight else list(self.schema)

    def _statement(self) -> sql.Composed:
        """The number of rows, and one or two aggregates for each column but the weight."""
        names = [sql.SQL(f"c{number}") for number in range(len(self.schema))]
        parts = [
            _aggregates(column.type, is_nullable=number in self._nullable).format(names[number])
            for number, column in enumerate(self._counted())
        ]
        listed = sql.SQL(", ")
        return sql.SQL("select {} from ({}) as q({})").format(
            listed.join([sql.SQL("count(*)"), *parts]), sql.SQL(cast(Any, self.query)), listed.join(names)
        )


def _aggregates(kind: pa.DataType, *, is_nullable: bool) -> sql.SQL:
    if kind == pa.string():
        return sql.SQL("string_agg({0}, ''), array_agg(coalesce(octet_length({0}), -1))")
    if pa.types.is_decimal(kind):
        return sql.SQL("string_agg(coalesce(({0})::text, ''), chr(10))")
    if is_nullable:
        return sql.SQL("array_agg({0}) filter (where {0} is not null), array_agg({0} is null)")
    return sql.SQL("array_agg({0})")


def _has_nulls(value: bytes | None) -> bool:
    return value is None or bool(np.frombuffer(value, _HEADER, 1)["nulls"][0])


def _elements(value: bytes, form: str) -> np.ndarray[Any, np.dtype[Any]]:
    """The elements of an array without nulls: each has its length in front."""
    pairs = np.dtype([("length", ">i4"), ("value", form)])
    size = int(np.frombuffer(value, _HEADER, 1)["size"][0])
    found = np.frombuffer(value, pairs, size, _HEADER.itemsize)["value"]
    return cast("np.ndarray[Any, np.dtype[Any]]", found)


def _numbers(value: bytes | None, kind: pa.DataType) -> pa.Array:
    assert value is not None
    found = _elements(value, _FORMS[kind])
    return pa.array(found.astype(found.dtype.newbyteorder("=")), kind)


def _with_nulls(value: bytes | None, nulls: bytes | None, kind: pa.DataType, count: int) -> pa.Array:
    """The numbers that are there, at the places of the rows that have one."""
    assert nulls is not None
    is_null = _elements(nulls, "?")
    form = np.dtype(_FORMS[kind]).newbyteorder("=")
    filled = np.zeros(count, form)
    if value is not None:
        filled[~is_null] = _elements(value, _FORMS[kind])
    return pa.array(filled, kind, mask=is_null)


def _texts(joined: bytes | None, lengths: bytes | None, count: int) -> pa.Array:
    """Texts from all of them in one, and their lengths, which are -1 for a null."""
    assert lengths is not None
    sizes = _elements(lengths, ">i4")
    is_null = sizes < 0
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(np.maximum(sizes, 0), out=offsets[1:])
    validity = None
    if is_null.any():
        validity = pa.py_buffer(np.packbits(~is_null, bitorder="little"))
    return pa.Array.from_buffers(
        pa.string(), count, [validity, pa.py_buffer(offsets), pa.py_buffer(joined or b"")]
    )


def _decimals(lines: bytes | None, kind: pa.DataType) -> pa.Array:
    assert lines is not None
    if not lines:  # one row, with a null
        return pa.nulls(1, kind)
    # a last line that is empty would not count without its end
    text = lines + b"\n"
    table = csv.read_csv(
        pa.BufferReader(text),
        csv.ReadOptions(column_names=["v"], block_size=len(text) + 1, use_threads=False),
        csv.ParseOptions(ignore_empty_lines=False, quote_char=False),
        csv.ConvertOptions(column_types={"v": kind}, null_values=[""]),
    )
    return table.column(0).combine_chunks()
