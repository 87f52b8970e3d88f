"""The decimals of an expression are known where they have a bound, and PostgreSQL keeps to it."""

from __future__ import annotations

import pytest
import sqlglot

from pgtrickle.plan.expressions.numerics import Numeric, numeric_of
from pgtrickle.postgres.introspect import expression_types

COLUMNS = {
    "i": "integer",
    "b": "bigint",
    "n": "numeric",
    "n2": "numeric(10,2)",
    "n4": "numeric(12,4)",
    "f": "float8",
}
KNOWN = {
    "i": Numeric(10, 0, True),
    "n2": Numeric(8, 2, True),
    "-n2": Numeric(8, 2, True),
    "abs(n4)": Numeric(8, 4, True),
    "1.50": Numeric(1, 2, True),
    "n2 + n4": Numeric(9, 4, True),
    "n2 - i": Numeric(11, 2, True),
    "n2 * n4": Numeric(16, 6, True),
    "n2 * (1 - n2)": Numeric(17, 4, True),
    "n4::numeric(10,1)": Numeric(9, 1, True),
    "n4::numeric(10)": Numeric(10, 0, True),
    "i::numeric": Numeric(10, 0, True),
    "coalesce(n2, n2)": Numeric(8, 2, True),
    "coalesce(n2, 0)": Numeric(8, 2, False),
    "case when i > 0 then n2 else n4 end": Numeric(8, 4, False),
    "case when i > 0 then n2 end": Numeric(8, 2, True),
}
ROWS = """
insert into r values (1, 2, 1.5, 1.5, 2.5, 1), (-3, 0, 9, 0, 12.3456, 2), (7, 7, 1, null, 0.1, 0)
"""
UNKNOWN = ["n", "f", "n2 / n4", "n2 + n", "f::numeric", "sqrt(n2)", "1e3", "coalesce(n2, n)", "null"]


@pytest.fixture
def types(connection):
    connection.execute(f"create temporary table r ({', '.join(f'{c} {t}' for c, t in COLUMNS.items())})")
    described = expression_types(connection, "pg_temp.r as t", [f"t.{name}" for name in COLUMNS])
    return dict(zip(COLUMNS, described, strict=True)).__getitem__


def test_the_scale_of_an_expression_is_what_postgresql_gives(types, connection):
    connection.execute(ROWS)
    for text, known in KNOWN.items():
        assert (text, numeric_of(sqlglot.parse_one(text, dialect="postgres"), types)) == (text, known)
        found = [s for (s,) in connection.execute(f"select scale(({text})::numeric) from r") if s is not None]
        assert max(found) <= known.scale
        (largest,) = connection.execute(f"select max(trunc(abs({text})))::text from r").fetchone()
        assert len(largest) <= known.before
        if known.is_uniform:
            assert (text, set(found)) == (text, {known.scale})


def test_an_expression_without_a_bound_has_no_scale(types):
    for text in UNKNOWN:
        assert (text, numeric_of(sqlglot.parse_one(text, dialect="postgres"), types)) == (text, None)
