"""Moves rows between PostgreSQL and Arrow by COPY, on the connection and in the snapshot of the caller."""

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
    """The Arrow type of values that have this type in Spark."""
    return pa.decimal128(form.precision, form.scale) if isinstance(form, DecimalType) else _TYPES[form]


def arrow_schema(fields: Sequence[Field], *, has_weight: bool = False) -> pa.Schema:
    """The fields as an Arrow schema, followed by their weight where the rows have one."""
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
    """All rows of the query; its columns are the fields in order, then the weight if there is one."""
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
    """The rows of the query in batches of about `chunk_bytes`, read as they are asked for.

    With `parameters`, which are placed into the text by the client, a literal `%` is written `%%`.
    """
    encoding = connection.info.parameter_status("server_encoding") or ""
    body = _legible(sql.SQL(query) if isinstance(query, str) else query, schema, encoding)
    statement = sql.SQL("copy ({}) to stdout (format csv, encoding 'UTF8')").format(body)
    with connection.cursor() as cursor, cursor.copy(statement, parameters) as copy:
        for chunk in _chunks(connection, copy, chunk_bytes):
            yield from _parsed(chunk, schema)


_BITS: Final[dict[pa.DataType, tuple[str, str]]] = {
    pa.float32(): ("float4send", "f"),
    pa.float64(): ("float8send", "d"),
}
"""Which function gives the bits of a float, and their form: its digits are as many as a setting says."""


_AMBIGUOUS: Final = frozenset({"EUC_JP", "EUC_TW"})
"""Encodings with characters that become the same in UTF-8."""


def _legible(query: sql.Composable, schema: pa.Schema, encoding: str) -> sql.Composable:
    """The query with its floats as the digits of their bits; raises at a text that UTF-8 would change."""
    forms = {kind: f"encode({function}({{}}), 'hex')" for kind, (function, _) in _BITS.items()}
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


def _of_bits(digits: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """The floats whose bits these digits are."""
    floats = array(_BITS[kind][1], bytes.fromhex("".join(digits.drop_null().to_pylist())))
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
    """Append the rows of the batches, all with these columns, as they come."""
    # every text is quoted and a null is not, so that PostgreSQL tells an empty text from a null
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
    """Whole rows joined to chunks: each message of a COPY holds exactly one row.

    Taking the rows that have already arrived straight from libpq is three times as fast as
    asking psycopg for each; psycopg is asked where we must wait.
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
    """Take the outcome of a COPY whose rows have all come."""
    while result := connection.pgconn.get_result():
        if result.status != ExecStatus.COMMAND_OK:
            error = errors.error_from_result(result)
            while connection.pgconn.get_result():
                pass
            raise error


def _parsed(chunk: bytes, schema: pa.Schema) -> list[pa.RecordBatch]:
    table = csv.read_csv(
        pa.BufferReader(chunk),
        csv.ReadOptions(column_names=schema.names, block_size=len(chunk) + 1, use_threads=False),
        csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        csv.ConvertOptions(
            column_types={f.name: pa.string() if f.type in _BITS else f.type for f in schema},
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            true_values=["t"],
            false_values=["f"],
        ),
    )
    for number, field in enumerate(schema):
        if field.type in _BITS:
            table = table.set_column(number, field, _of_bits(table.column(number), field.type))
    return cast(list[pa.RecordBatch], table.to_batches())
