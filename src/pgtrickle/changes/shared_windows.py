"""Reads the window of a source once for several programs.

Each reader has its own condition and expressions over the change rows. So the rows are taken from the buffer
once, and the answer has separate columns for each reader.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from pgtrickle.changes.memory import Holding
from pgtrickle.changes.read import fields_of
from pgtrickle.changes.relations import Ends, captured_rows, carried_list, change_of, where, where_all
from pgtrickle.model.carrier import DecimalType, SparkType
from pgtrickle.plan.reads import WEIGHT, Read, ReadKind
from pgtrickle.postgres.arrow import arrow_schema, read_batches
from pgtrickle.postgres.connection import Connection, sql

Reader = tuple[Read, Ends]

MAX_COLUMNS: Final = 800
"""PostgreSQL allows at most 1664 columns in an answer."""
_READER: Final = "reader"
_WINDOW: Final = sql.Identifier("window of the source")


def can_be_shared(read: Read) -> bool:
    """Whether a read takes only change rows of one source."""
    is_plain = read.kind is ReadKind.CHANGES and not read.follows_clock and not read.lookups
    return is_plain and read.source is not None and bool(read.fields)


def read_together(connection: Connection, asked: Sequence[Reader], holding: Holding) -> list[pa.Table]:
    """The rows of each of these reads, which are all of one source from one frontier on."""
    return [table for part in _portions(asked) for table in _read(connection, part, holding)]


def _portions(asked: Sequence[Reader]) -> Iterator[list[Reader]]:
    """Batches of readers that keep the number of columns under the limit."""
    portion: list[Reader] = []
    columns = 0
    for one in asked:
        width = len(one[0].fields) + 1
        if portion and columns + width > MAX_COLUMNS:
            yield portion
            portion, columns = [], 0
        portion.append(one)
        columns += width
    if portion:
        yield portion


def _read(connection: Connection, asked: Sequence[Reader], holding: Holding) -> list[pa.Table]:
    schemas = [arrow_schema(fields_of(read), has_weight=True) for read, _ in asked]
    names = count()
    columns = [[f"c{next(names)}" for _ in schema] for schema in schemas]
    wide = pa.schema(
        [pa.field(_READER, pa.int32())]
        + [
            pa.field(name, field.type)
            for schema, part in zip(schemas, columns, strict=True)
            for name, field in zip(part, schema, strict=True)
        ]
    )
    # a row has only the values of one reader
    values = len(wide) // len(asked)
    found = holding.table(read_batches(connection, _query(asked), wide), wide, values)
    tables = []
    for number, (schema, part) in enumerate(zip(schemas, columns, strict=True)):
        rows = found.filter(pc.equal(found.column(_READER), number)).select(part)
        tables.append(rows.rename_columns(schema.names))
    return tables


def _query(asked: Sequence[Reader]) -> sql.Composed:
    first, ends = asked[0]
    uses = frozenset().union(*(read.uses for read, _ in asked))
    arms = [_arm(number, asked) for number in range(len(asked))]
    return sql.SQL("with {} as materialized ({}) {}").format(
        _WINDOW, captured_rows(first, ends, uses), sql.SQL(" union all ").join(arms)
    )


def _arm(number: int, asked: Sequence[Reader]) -> sql.Composed:
    """The rows of one reader: its own columns, and nulls for those of the others."""
    read, ends = asked[number]
    assert read.source is not None
    change = change_of(read.source)
    before = [_nulls(other) for other, _ in asked[:number]]
    after = [_nulls(other) for other, _ in asked[number + 1 :]]
    rows = sql.SQL(
        "select {fields}, sum(t.{change})::bigint as {weight}"
        " from (select * from {window} as t{condition}) as t{where}"
        " group by {positions} having sum(t.{change}) <> 0"
    ).format(
        fields=carried_list(read),
        weight=sql.Identifier(WEIGHT),
        change=change,
        window=_WINDOW,
        condition=where(read, [], ends.before),
        where=where_all([sql.SQL("t.{} <> 0").format(change)]),
        positions=sql.SQL(", ").join(sql.SQL(str(n + 1)) for n in range(len(read.fields))),
    )
    columns = sql.SQL(", ").join([sql.Literal(number), *before, sql.SQL("r.*"), *after])
    return sql.SQL("select {} from ({}) as r").format(columns, rows)


def _nulls(read: Read) -> sql.Composed:
    types = [_sql_type(field.carrier.form) for field in read.fields]
    return sql.SQL(", ").join(sql.SQL("null::" + name) for name in (*types, "bigint"))


def _sql_type(form: SparkType) -> str:
    return "numeric" if isinstance(form, DecimalType) else form.postgres
