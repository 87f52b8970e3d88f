"""Copies rows between PostgreSQL and Arrow by COPY, on the connection and in the snapshot of the caller."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Any, Final, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
from psycopg import Connection, Copy, errors, sql
from psycopg.pq import ExecStatus

from pgtrickle.model.carrier import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    DecimalType,
    Field,
    SparkType,
)

WEIGHT: Final = "weight"
CHUNK_BYTES: Final = 4 << 20

_TYPES: Final[dict[SparkType, pa.DataType]] = {
    BOOLEAN: pa.bool_(),
    SMALLINT: pa.int16(),
    INT: pa.int32(),
    BIGINT: pa.int64(),
    FLOAT: pa.float32(),
    DOUBLE: pa.float64(),
    STRING: pa.string(),
}

Query = str | sql.Composable


def arrow_type(form: SparkType) -> pa.DataType:
    """The Arrow type for a Spark type."""
    return pa.decimal128(form.precision, form.scale) if isinstance(form, DecimalType) else _TYPES[form]


def arrow_schema(fields: Sequence[Field], *, has_weight: bool = False) -> pa.Schema:
    """The fields as an Arrow schema, followed by the weight if the rows have one."""
    columns = [pa.field(field.name, arrow_type(field.carrier.form)) for field in fields]
    return pa.schema([*columns, pa.field(WEIGHT, pa.int64())] if has_weight else columns)


def read_arrow(
    connection: Connection[Any],
    query: Query,
    fields: tuple[Field, ...],
    *,
    has_weight: bool = False,
    parameters: Sequence[Any] | None = None,
) -> pa.Table:
    """Read all rows of a query. Its columns are the fields in order, then the weight if there is one."""
    schema = arrow_schema(fields, has_weight=has_weight)
    return pa.Table.from_batches(read_batches(connection, query, schema, parameters=parameters), schema)


def read_batches(
    connection: Connection[Any],
    query: Query,
    schema: pa.Schema,
    *,
    parameters: Sequence[Any] | None = None,
    chunk_bytes: int = CHUNK_BYTES,
) -> Generator[pa.RecordBatch, None, None]:
    """Read the rows of a query lazily in batches of about `chunk_bytes`.

    The client inserts `parameters` into the text. With them, write a literal `%` as `%%`.
    """
    encoding = connection.info.parameter_status("server_encoding") or ""
    body = _transportable(sql.SQL(query) if isinstance(query, str) else query, schema, encoding)
    statement = sql.SQL("copy ({}) to stdout (format csv, encoding 'UTF8')").format(body)
    with connection.cursor() as cursor, cursor.copy(statement, parameters) as copy:
        for chunk in _chunks(connection, copy, chunk_bytes):
            yield from _parse(chunk, schema)


_FLOATS: Final[dict[pa.DataType, tuple[str, str]]] = {
    pa.float32(): ("float4send", "f"),
    pa.float64(): ("float8send", "d"),
}
"""The function that returns the bits of a float, and its array type code.

The decimal text of a float depends on a setting, so floats travel as the hex digits of their bits.
"""


_AMBIGUOUS: Final = frozenset({"EUC_JP", "EUC_TW"})
"""Encodings in which different characters map to the same one in UTF-8."""


def _transportable(query: sql.Composable, schema: pa.Schema, encoding: str) -> sql.Composable:
    """The query with floats as hex digits of their bits, and an error for texts that UTF-8 would change."""
    forms = {kind: f"encode({function}({{}}), 'hex')" for kind, (function, _) in _FLOATS.items()}
    if encoding in _AMBIGUOUS:
        forms[pa.string()] = "pgtrickle_internal.same_in_utf8({})"
    if not any(field.type in forms for field in schema):
        return query
    names = [sql.SQL(f"c{number}") for number in range(len(schema))]
    columns = [
        sql.SQL(forms.get(field.type, "{}")).format(name) for name, field in zip(names, schema, strict=True)
    ]
    listed = sql.SQL(", ")
    return sql.SQL("select {} from ({}) as q({})").format(listed.join(columns), query, listed.join(names))


def _floats_from_hex(digits: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """The floats from the hex digits of their bits."""
    floats = array(_FLOATS[kind][1], bytes.fromhex("".join(digits.drop_null().to_pylist())))
    if sys.byteorder == "little":
        floats.byteswap()
    present = pa.Array.from_buffers(kind, len(floats), [None, pa.py_buffer(floats)])
    if len(floats) == len(digits):
        return present
    return pc.replace_with_mask(pa.nulls(len(digits), kind), digits.is_valid().combine_chunks(), present)


def write_batches(
    connection: Connection[Any],
    table: sql.Composable,
    columns: Sequence[str],
    batches: Iterable[pa.RecordBatch],
) -> int:
    """Append the rows of the batches as they arrive; return their number."""
    # quote every text but no null, so that PostgreSQL can distinguish an empty text from a null
    options = csv.WriteOptions(include_header=False, quoting_style="needed")
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    statement = sql.SQL("copy {} ({}) from stdin (format csv, encoding 'UTF8')").format(table, names)
    written = 0
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        for batch in batches:
            sink = pa.BufferOutputStream()
            csv.write_csv(batch, sink, options)
            copy.write(memoryview(sink.getvalue()))
            written += len(batch)
    return written


def _chunks(connection: Connection[Any], copy: Copy, chunk_bytes: int) -> Iterator[bytes]:
    """Join whole rows into chunks; each message of a COPY holds exactly one row.

    Reading rows that have already arrived directly from libpq is three times as fast as through
    psycopg. psycopg reads only when we have to wait.
    """
    take = connection.pgconn.get_copy_data
    rows: list[bytes] = []
    size = 0
    while row := copy.read():
        length = len(row)
        while length > 0:
            rows.append(bytes(row))
            size += length
            if size >= chunk_bytes:
                yield b"".join(rows)
                rows, size = [], 0
            length, row = take(1)
        if length < 0:
            _finish(connection)
            break
    if rows:
        yield b"".join(rows)


def _finish(connection: Connection[Any]) -> None:
    """Read the result of a COPY after its last row; raise if it failed."""
    while result := connection.pgconn.get_result():
        if result.status != ExecStatus.COMMAND_OK:
            error = errors.error_from_result(result)
            while connection.pgconn.get_result():
                pass
            raise error


def _parse(chunk: bytes, schema: pa.Schema) -> list[pa.RecordBatch]:
    table = csv.read_csv(
        pa.BufferReader(chunk),
        csv.ReadOptions(column_names=schema.names, block_size=len(chunk) + 1, use_threads=False),
        csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        csv.ConvertOptions(
            column_types={f.name: pa.string() if f.type in _FLOATS else f.type for f in schema},
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            true_values=["t"],
            false_values=["f"],
        ),
    )
    for number, field in enumerate(schema):
        if field.type in _FLOATS:
            table = table.set_column(number, field, _floats_from_hex(table.column(number), field.type))
    return cast(list[pa.RecordBatch], table.to_batches())
