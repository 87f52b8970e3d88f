"""Array literals: PostgreSQL reads exactly the values of the column, however many there are."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from pgtrickle.postgres.array_literals import array_literal

MANY = 60
TEXTS = [
    "a",
    "",
    None,
    "NULL",
    "null",
    '"',
    "\\",
    "{}",
    ",",
    '\\"x\n\t',
    "é😀",
    "'",
    " both ends ",
    "%s %% %(x)s",
]
CASES: list[tuple[str, pa.DataType, list[Any]]] = [
    ("boolean", pa.bool_(), [True, None, False]),
    ("smallint", pa.int16(), [0, None, -(2**15)]),
    ("bigint", pa.int64(), [1, None, -(2**63), 2**63 - 1]),
    (
        "double precision",
        pa.float64(),
        [1.5, None, float("inf"), float("-inf"), 5e-324, 1.7976931348623157e308, 1 / 3],
    ),
    (
        "numeric(38,10)",
        pa.decimal128(38, 10),
        [Decimal("1.5"), None, Decimal("-0.0000000001"), Decimal(10**27)],
    ),
    ("text", pa.string(), TEXTS),
]


@pytest.mark.parametrize("times", [0, 1, MANY])
@pytest.mark.parametrize(("pg_type", "arrow", "values"), CASES, ids=[case[0] for case in CASES])
def test_postgresql_reads_the_same_values(app, pg_type, arrow, values, times):
    column = pa.chunked_array([pa.array(values, arrow)] * times, arrow)
    query = f"select v from unnest(%s::{pg_type}[]) with ordinality as u(v, n) order by n"
    assert [row[0] for row in app.execute(query, (array_literal(column),))] == values * times


@pytest.mark.parametrize("times", [1, MANY])
def test_postgresql_reads_the_same_bits_of_floats(app, times):
    values = [0.1, 3.4028234663852886e38, 1e-45, -0.0, float("nan"), 1 / 3]
    column = pa.chunked_array([pa.array(values, pa.float32())] * times)
    query = "select float4send(v) from unnest(%s::real[]) with ordinality as u(v, n) order by n"
    found = [row[0] for row in app.execute(query, (array_literal(column),))]
    # as PostgreSQL sends what Python sends
    sent = app.execute(query, (column.to_pylist(),)).fetchall()
    assert found == [row[0] for row in sent]
