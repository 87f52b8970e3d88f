"""Spark gives the answers of PostgreSQL to every form of expression that it is trusted with."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
import sqlglot
from psycopg import sql

from pgtrickle.model.carrier import Field
from pgtrickle.model.errors import UnsupportedQuery
from pgtrickle.model.names import quoted
from pgtrickle.model.source import PgType
from pgtrickle.plan.carriers import carrier_of, decimal
from pgtrickle.plan.expressions import Expression
from pgtrickle.plan.lowering.exactness import spark_expression, spark_scale
from pgtrickle.plan.operators import Column
from pgtrickle.postgres.arrow import read_arrow
from pgtrickle.postgres.introspect import expression_types
from tests.plan.values import DATES, NASTY, TEXTS, TIMESTAMPS

SMALL = ["0", "1", "-1", "2", "7", "-30000"]
MONEY = ["0", "1.5", "1.50", "-0.01", "99999999.99", "2"]
FLOATS = NASTY["double precision"]
COLUMNS: dict[str, tuple[str, list[str]]] = {
    "s": ("smallint", ["0", "1", "-1", "7", "100"]),
    "i": ("integer", SMALL),
    "j": ("integer", SMALL),
    "l": ("bigint", [*SMALL, "9007199254740993"]),
    "m": ("numeric(10,2)", MONEY),
    "w": ("numeric(12,4)", [*MONEY, "0.0001", "1.4999"]),
    "t": ("text", TEXTS),
    "u": ("text", TEXTS),
    "v": ("character varying(4)", ["a", "a ", "", "A"]),
    "c": ('text collate "C"', TEXTS),
    "k": ('text collate "C"', TEXTS),
    "f": ("double precision", FLOATS),
    "g": ("double precision", FLOATS),
    "r": ("real", NASTY["real"]),
    "p": ("boolean", ["true", "false"]),
    "q": ("boolean", ["true", "false"]),
    "d": ("date", DATES),
    "e": ("date", DATES),
    "x": ("timestamp", TIMESTAMPS),
    "y": ("timestamp", TIMESTAMPS),
    "z": ("timestamp with time zone", TIMESTAMPS),
    "h": ("uuid", NASTY["uuid"]),
}
COMPARED = ["i s", "i j", "i l", "m i", "f g", "f r", "d e", "x y", "c k"]
EXACT = [
    *(f"{a} {sign} {b}" for a, b in map(str.split, COMPARED) for sign in ("=", "<>", "<", "<=", ">", ">=")),
    *("t = u", "t <> u", "t = v", "p = q", "p <> q", "h = h", "z = z", "z < z", "i = 7", "m > 1", "l < -1"),
    *("t = 'a'::text", "t <> ''::text", "c = 'say \"x\"'::text", "p = true"),
    *("p and q", "p or q", "not p", "not (p and i = j)", "p and (q or i < j)", "p or i = j and q"),
    *(
        "i is null",
        "i is not null",
        "q is not true",
        "not (t is null)",
        "p is true",
        "q is false",
        "(i = j) is true",
        "(i < j) is null",
    ),
    *("i + j", "i - l", "s + 1", "s * i", "l * 2", "m + w", "m - i", "m * w", "m * i + w", "(m - 1) * 2"),
    *("case when p then i else j end", "case when p then t end"),
    *(
        "coalesce(i, j)",
        "coalesce(t, u)",
        "coalesce(m, w)",
        "coalesce(d, e)",
        "coalesce(i, 0)",
        "coalesce(p, false)",
    ),
    *("i + 1 = j", "case when p then 1 else 0 end", "coalesce(x, y)", "null"),
]
MIXED = [
    *(f"m {sign} w" for sign in ("=", "<>", "<", "<=", ">", ">=")),
    *("m + w < m * 2", "m * m < w", "coalesce(m, w)", "case when i < j then m when q then w end"),
]
"""Numbers of different scales: Spark rounds the finer one if both together need more than 38 digits."""

REFUSED = [
    *(
        "i / j",
        "i % j",
        "t < u",
        "t || u",
        "lower(t) = u",
        "m / w",
        "i::text = t",
        "f + g",
        "d - e",
        "t like u",
    ),
    *(
        "p < q",
        "h < h",
        "m = f",
        "i = f",
        "t = 'it''s'::text",
        "-i = j",
        "i = any (array[1, 2])",
        "greatest(i, j)",
    ),
]


@dataclass(frozen=True, slots=True)
class Rows:
    """Random rows in both engines."""

    columns: tuple[Column, ...]
    connection: Any
    spark: Any

    def spark_values(self, texts: list[str]) -> list[tuple[Any, ...]]:
        from pgtrickle.pipeline.small import run_small

        fields = tuple(Field(column.name, column.carrier) for column in self.columns)
        carried = ", ".join(f.carrier.carry_sql(f"t.{quoted(f.name)}") for f in fields)
        held = read_arrow(self.connection, f"select {carried} from numbered t order by t.number", fields)
        listed = ", ".join(f"{text} as e{n}" for n, text in enumerate(texts))
        found = run_small(self.spark, f"select {listed} from held", {"held": held})
        return list(zip(*(found[f"e{n}"].to_pylist() for n in range(len(texts))), strict=True))


@pytest.fixture
def described(connection):
    """The columns, as scans give them to Spark."""
    listed = ", ".join(f"{quoted(name)} {type_}" for name, (type_, _) in COLUMNS.items())
    connection.execute(f"create temporary table numbered (number int, {listed})")
    types = expression_types(connection, "pg_temp.numbered as t", [f"t.{quoted(name)}" for name in COLUMNS])
    return tuple(_column(name, type_) for name, type_ in zip(COLUMNS, types, strict=True))


def _column(name: str, type_: PgType) -> Column:
    if type_.base == "numeric":
        assert type_.precision is not None
        assert type_.scale is not None
        return Column(name, type_, decimal(type_, type_.scale, type_.precision))
    return Column(name, type_, carrier_of(type_))


@pytest.fixture
def rows(described, connection, spark):
    random = Random(7)
    for number in range(400):
        values = [random.choice([*held, None]) for _, held in COLUMNS.values()]
        placed = sql.SQL(", ").join(map(sql.Literal, [number, *values]))
        connection.execute(sql.SQL("insert into numbered values ({})").format(placed))
    return Rows(described, connection, spark)


def test_every_trusted_form_gives_the_same_answer(rows):
    assert differing(rows, EXACT) == []


def test_numbers_of_different_scales_give_the_same_answer(rows):
    assert differing(rows, MIXED) == []


def test_numbers_that_spark_would_round_are_refused(described):
    wide = tuple(
        Column(c.name, c.type, decimal(c.type, c.type.scale)) if c.type.scale is not None else c
        for c in described
    )
    for text in MIXED:
        if "*" not in text and "+" not in text:
            with pytest.raises(UnsupportedQuery):
                spark_expression(Expression(sqlglot.parse_one(text, dialect="postgres")), wide)


def differing(rows: Rows, texts: list[str]) -> list[str]:
    """The expressions to which the engines give different answers on some row."""
    connection = rows.connection
    expressions = [Expression(sqlglot.parse_one(text, dialect="postgres")) for text in texts]
    types = expression_types(connection, "pg_temp.numbered as t", [_over(e) for e in expressions])
    carriers = [
        decimal(type_, spark_scale(e, rows.columns)) if type_.base == "numeric" else carrier_of(type_)
        for e, type_ in zip(expressions, types, strict=True)
    ]
    wanted = connection.execute(
        "select "
        + ", ".join(carrier.carry_sql(_over(e)) for e, carrier in zip(expressions, carriers, strict=True))
        + " from numbered t order by number"
    ).fetchall()
    found = rows.spark_values([spark_expression(e, rows.columns) for e in expressions])
    different = {
        text
        for row, other in zip(wanted, found, strict=True)
        for text, a, b in zip(texts, row, other, strict=True)
        if not _is_same(a, b)
    }
    return sorted(different)


def _over(expression: Expression) -> str:
    return expression.over(lambda name: f"t.{quoted(name)}")


def _is_same(one: Any, other: Any) -> bool:
    return bool(one == other or (one != one and other != other))


def test_forms_that_nobody_has_compared_are_refused(described):
    trusted = []
    for text in REFUSED:
        try:
            spark_expression(Expression(sqlglot.parse_one(text, dialect="postgres")), described)
            trusted.append(text)
        except UnsupportedQuery:
            pass
    assert trusted == []
