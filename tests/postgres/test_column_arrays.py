"""What is read column by column equals what is read row by row, for every way a value is carried."""

from __future__ import annotations

import psycopg
import pyarrow as pa
import pytest

from pgtrickle.model.carrier import Field
from pgtrickle.model.source import Source
from pgtrickle.model.stream_table import RelationId
from pgtrickle.pipeline.ranges import page_ranges
from pgtrickle.plan.carriers import carrier_of, decimal
from pgtrickle.postgres.arrow import WEIGHT, arrow_schema, read_batches
from pgtrickle.postgres.column_arrays import PAGES, ColumnReader, PageRange
from pgtrickle.postgres.connection import connect
from pgtrickle.postgres.introspect import describe_sources

COLUMNS = {
    "small": ("smallint", "1", "-32768", "0"),
    "number": ("integer", "-1", "2147483647", "0"),
    "long": ("bigint", "9223372036854775807", "-9223372036854775808", "0"),
    "single": ("real", "'NaN'", "'-Infinity'", "0.1"),
    "double": ("double precision", "'-0'", "1e-300", "0.1"),
    "flag": ("boolean", "true", "false", "null"),
    "price": ("numeric(12,2)", "0.01", "-9999999999.99", "null"),
    "huge": ("numeric(38,6)", "12345678901234567890123456789012.123456", "0", "-0.000001"),
    "free": ("numeric", "'NaN'", "1.100", "null"),
    "words": ("text", "''", "E'line\\n\"x\\\\,'", "'Ärger 😀'"),
    "code": ("character(4)", "'a'", "''", "'ä'"),
    "day": ("date", "'infinity'", "'-infinity'", "'0001-01-01 BC'"),
    "moment": ("timestamptz", "'infinity'", "'-infinity'", "'2024-02-29 12:00:00.000001+02'"),
    "local": ("timestamp", "'-infinity'", "'294276-12-31 23:59:59.999999'", "'4713-01-01 BC'"),
    "cash": ("money", "1", "-1", "0"),
    "bits": ("bytea", "'\\x00'", "'\\xdeadbeef'", "''"),
    "id": (
        "uuid",
        "'7b8e1c9a-0000-0000-0000-00000000000a'",
        "null",
        "'ffffffff-ffff-ffff-ffff-ffffffffffff'",
    ),
    "doc": ("jsonb", "'{}'", "'{\"a\": null}'", "'[1]'"),
    "tags": ("text[]", "'{}'", "'{NULL,\"b,c\"}'", "'{ä}'"),
    "domain": ("moment", "'infinity'", "'2000-01-01'", "'-infinity'"),
}
"""The type of each column, and its values in three rows; the fourth row has only nulls."""
LARGE = "(select string_agg(md5(n::text), '') from generate_series(1, 9999) n)"


@pytest.fixture
def odd(connection: psycopg.Connection) -> Source:
    """A table on several pages, in which each of the odd rows occurs many times."""
    connection.execute("create schema if not exists pgtrickle_state")
    connection.execute("create domain pgtrickle_state.moment as timestamptz")
    columns = ", ".join(f"{name} {kind}" for name, (kind, *_) in COLUMNS.items())
    connection.execute(f"set local search_path = pgtrickle_state, pg_catalog; create table odd ({columns})")
    for row in zip(*(values for _, *values in COLUMNS.values()), strict=True):
        connection.execute(f"insert into odd values ({', '.join(row)})")
    connection.execute("insert into odd (small) values (null)")
    for _ in range(5):
        connection.execute("insert into odd select * from odd")
    found = connection.execute("select 'odd'::regclass::oid::bigint").fetchone()
    assert found is not None
    connection.commit()
    relation = RelationId(found[0])
    return describe_sources(connection, [relation])[relation]


def fields_of(source: Source) -> tuple[Field, ...]:
    return tuple(
        Field(
            column.name,
            decimal(column.type, column.type.scale)
            if column.type.scale is not None and column.type.base == "numeric"
            else carrier_of(column.type),
        )
        for column in source.columns
    )


def by_rows(connection, fields: tuple[Field, ...], where: str = "true") -> pa.Table:
    listed = ", ".join(field.carrier.carry_sql(f"t.{field.name}") for field in fields)
    schema = arrow_schema(fields, has_weight=True)
    query = f"select {listed}, 1::bigint from pgtrickle_state.odd t where {where}"
    return pa.Table.from_batches(read_batches(connection, query, schema), schema)


def by_columns(
    connection, fields: tuple[Field, ...], pages: PageRange, step: int, where: str = "true"
) -> pa.Table:
    listed = ", ".join(field.carrier.stored_sql(f"t.{field.name}") for field in fields)
    schema = arrow_schema(fields, has_weight=True)
    query = f"select {listed}, 1::bigint from pgtrickle_state.odd t where {where} and {PAGES}"
    return pa.Table.from_batches(
        ColumnReader(connection, query, schema, has_weight=True).batches(pages, step), schema
    )


def rows_of(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


@pytest.mark.every_postgres
@pytest.mark.parametrize("step", [1, 2, 256])
def test_columns_equal_rows_for_every_type(odd, dsn, step):
    fields = fields_of(odd)
    with connect(dsn) as connection:
        found = page_ranges(connection, odd, 2)
        assert len(found.ranges) == 2
        assert found.step is not None
        tables = [by_columns(connection, fields, pages, step) for pages in found.ranges]
        expected = by_rows(connection, fields)
    assert rows_of(pa.concat_tables(tables)) == rows_of(expected)
    assert all(batch.validate(full=True) is None for table in tables for batch in table.to_batches())
    assert set(tables[0].column(WEIGHT).to_pylist()) == {1}


def test_a_column_may_be_called_weight(connection, dsn):
    connection.execute("create schema if not exists pgtrickle_state")
    connection.execute("create table pgtrickle_state.parcels as select 7::bigint as weight")
    connection.commit()
    schema = pa.schema([(WEIGHT, pa.int64())])
    query = f"select t.weight from pgtrickle_state.parcels t where {PAGES}"
    with connect(dsn) as reading:
        (batch,) = ColumnReader(reading, query, schema, has_weight=False).batches(PageRange(0, 1), 1)
    assert batch.to_pylist() == [{WEIGHT: 7}]


def test_a_range_without_rows_is_empty(odd, dsn):
    with connect(dsn) as connection:
        nothing = by_columns(connection, fields_of(odd), PageRange(0, 1, is_last=True), 1, "false")
    assert nothing.num_rows == 0


def test_rows_on_pages_that_were_added_belong_to_the_last_range(odd, dsn):
    fields = fields_of(odd)
    with connect(dsn) as connection:
        table = by_columns(connection, fields, PageRange(0, 1, is_last=True), 1)
        assert table.num_rows == by_rows(connection, fields).num_rows


@pytest.mark.parametrize(
    "wide", ["repeat('x', 10)", "(select string_agg(md5(n::text), '') from generate_series(1, 9999) n)"]
)
def test_a_table_with_values_of_any_size_is_read_row_by_row(odd, connection, wide):
    connection.execute(f"insert into pgtrickle_state.odd (words) select {wide}")
    found = page_ranges(connection, odd, 2)
    assert (found.step is None) == (wide.startswith("(select"))


def test_a_value_that_no_decimal_can_hold_is_refused_in_the_same_way(odd, dsn, connection):
    connection.execute("update pgtrickle_state.odd set price = 'NaN' where small = 1")
    connection.commit()
    fields = tuple(field for field in fields_of(odd) if field.name == "price")
    with connect(dsn) as reading, pytest.raises(pa.ArrowInvalid):
        by_rows(reading, fields)
    with connect(dsn) as reading, pytest.raises(pa.ArrowInvalid):
        by_columns(reading, fields, PageRange(0, 1, is_last=True), 1)
