"""Arrow columns as PostgreSQL array literals.

psycopg writes the values of a list one by one, which takes more than a microsecond for each. Arrow writes
many values at once.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

_FEW: Final = 100
"""Up to this number of values, the calls into Arrow would take longer."""


def array_literal(column: pa.ChunkedArray) -> str:
    """The values as the text of an array, which PostgreSQL reads back exactly."""
    return _literal_of_few(column) if len(column) <= _FEW else _literal_of_many(column)


def _literal_of_few(column: pa.ChunkedArray) -> str:
    text = _quoted if pa.types.is_string(column.type) else str
    # in a literal, only an unquoted NULL is null
    return f"{{{','.join('NULL' if value is None else text(value) for value in column.to_pylist())}}}"


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _literal_of_many(column: pa.ChunkedArray) -> str:
    texts = pc.cast(column, pa.string())
    if pa.types.is_string(column.type):
        texts = pc.replace_substring(pc.replace_substring(texts, "\\", "\\\\"), '"', '\\"')
        texts = pc.binary_join_element_wise('"', texts, '"', "")
    present = pc.fill_null(texts, "NULL").combine_chunks()
    values = pa.ListArray.from_arrays(pa.array([0, len(present)], pa.int32()), present)
    return f"{{{pc.binary_join(values, ',')[0].as_py()}}}"
