"""Values that go to Arrow and back by COPY stay the values they were."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import sql

from pgtrickle.model.carrier import Carrier, DecimalType, Field, PlainType
from pgtrickle.postgres.arrow import arrow_schema, read_arrow, write_batches

VALUES = {
    "boolean": ("boolean", ["true", "false"]),
    "smallint": ("smallint", ["-32768", "0", "32767"]),
    "int": ("integer", ["-2147483648", "2147483647"]),
    "bigint": ("bigint", ["-9223372036854775808", "9223372036854775807"]),
    "float": (
        "real",
        ["NaN", "Infinity", "-Infinity", "-0", "0", "1e-45", "3.4028235e38", "0.1", "16777217"],
    ),
    "double": (
        "double precision",
        [
            "NaN",
            "Infinity",
            "-Infinity",
            "-0",
            "5e-324",
            "2.2250738585072014e-308",
            "1.7976931348623157e308",
            "0.1",
        ],
    ),
    "decimal(12,2)": ("numeric(12,2)", ["-9999999999.99", "0.00", "0.01", "9999999999.99"]),
    "decimal(38,0)": ("numeric(38,0)", ["9" * 38, "-" + "9" * 38]),
    "string": (
        "text",
        [
            "",
            " ",
            "NULL",
            "null",
            "NaN",
            "\\N",
            "\\.",
            "before\n\\.\nafter",
            "a\r\nb",
            "\n",
            '"',
            '""',
            "a,b",
            "back\\slash",
            "tab\t",
            "naïve 🐘 \u2028",
            "t",
            "x" * 9_000_000,
        ],
    ),
}


DECIMALS = {form.spark: form for form in (DecimalType(12, 2), DecimalType(38, 0), DecimalType(5, 1))}


def field(name: str, spark_type: str, pg_type: str = "text") -> Field:
    form = DECIMALS.get(spark_type) or PlainType(spark_type)
    return Field(name, Carrier(pg_type, form, "{}", "{}", True, True))


@pytest.fixture
def values(connection: psycopg.Connection):
    """A table with the awkward values of one type, and nulls."""

    def create(spark_type: str) -> None:
        pg_type, texts = VALUES[spark_type]
        connection.execute(
            f"create temp table original as select row_number() over () as id, v::{pg_type} as v"
            " from unnest(array[null, null]::text[] || %s::text[]) v",
            (texts,),
        )
        connection.execute("create temp table copy (like original)")

    return create


@pytest.mark.every_postgres
@pytest.mark.parametrize("spark_type", VALUES)
def test_every_value_survives_the_way_to_arrow_and_back(connection, values, spark_type):
    values(spark_type)
    rows = read_arrow(
        connection, "select id, v from original", (field("id", "bigint"), field("v", spark_type))
    )
    write_batches(connection, sql.Identifier("copy"), rows.column_names, rows.to_batches())
    original = connection.execute("select v::text, v is null from original order by id").fetchall()
    copy = connection.execute("select v::text, v is null from copy order by id").fetchall()
    assert copy == original


@pytest.mark.every_postgres
@pytest.mark.parametrize("spark_type", VALUES)
def test_a_single_column_keeps_its_nulls(connection, values, spark_type):
    values(spark_type)
    rows = read_arrow(connection, "select v from original order by id", (field("v", spark_type),))
    assert rows.num_rows == len(VALUES[spark_type][1]) + 2
    assert rows["v"].null_count == 2
    write_batches(connection, sql.Identifier("copy"), rows.column_names, rows.to_batches())
    difference = "select v::text from {} except all select v::text from {}"
    assert connection.execute(difference.format("original", "copy")).fetchall() == []
    assert connection.execute(difference.format("copy", "original")).fetchall() == []


def test_many_rows_come_in_their_order(connection):
    rows = read_arrow(
        connection,
        "select g, 'text ' || g, g % 3 from generate_series(1, 300000) g",
        (field("g", "int"), field("t", "string")),
        has_weight=True,
    )
    assert rows.schema.names == ["g", "t", "weight"]
    assert rows["g"].to_pylist() == list(range(1, 300_001))
    assert rows["t"][299_999].as_py() == "text 300000"


def test_parameters_are_placed_by_their_types(connection):
    rows = read_arrow(
        connection,
        "select g from generate_series(1, 9) g where g = any(%s) and 10 %% 3 = 1",
        (field("g", "int"),),
        parameters=([2, 4, 99],),
    )
    assert rows["g"].to_pylist() == [2, 4]


def test_no_rows_still_have_their_types(connection):
    fields = (field("a", "int"), field("b", "decimal(5,1)"))
    rows = read_arrow(connection, "select 1, 1.0 where false", fields)
    assert rows.num_rows == 0
    assert rows.schema == arrow_schema(fields)


def test_writing_nothing_is_nothing(connection):
    connection.execute("create temp table target (a int)")
    assert write_batches(connection, sql.Identifier("target"), ["a"], []) == 0


def test_an_error_in_the_middle_is_that_error_and_leaves_the_connection_usable(connection):
    with pytest.raises(psycopg.errors.DivisionByZero):
        read_arrow(
            connection, "select 1 / (g - 70000) from generate_series(1, 100000) g", (field("g", "int"),)
        )
    connection.rollback()
    assert connection.execute("select 1").fetchone() == (1,)
