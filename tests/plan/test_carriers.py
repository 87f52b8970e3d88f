"""Values travel to Spark and back without loss, and compare there as their carriers claim."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from operator import eq, lt
from typing import Any

import psycopg
import pytest
from psycopg import sql

from pgtrickle.model.carrier import Carrier, Field
from pgtrickle.model.source import PgType
from pgtrickle.plan.carriers import carrier_of, decimal, verbatim
from pgtrickle.postgres.arrow import read_arrow
from pgtrickle.postgres.introspect import expression_types
from tests.plan.values import NASTY

SCALED = {"numeric(12,2)": ["0", "1.5", "-9999999999.99", "0.01"], "integer": ["-2147483648", "7"]}


@dataclass(frozen=True, slots=True)
class Column:
    """A temporary table `held` with one column `v` of some type, row by row in the order of `n`."""

    connection: psycopg.Connection
    type: PgType
    count: int

    def carried(self, carrier: Carrier) -> list[Any]:
        """The values in the form that Spark gets, one more for null at the end."""
        query = f"select {carrier.carry_sql('v')} from held order by n"
        return list(read_arrow(self.connection, query, (Field("v", carrier),))["v"].to_pylist())

    def restored(self, carrier: Carrier, values: list[Any]) -> list[Any]:
        """Whether each value is the one it was, and its text."""
        form = carrier.input_type or carrier.form.postgres.partition("(")[0]
        return self.connection.execute(
            f"select held.v::text, back.v::text from (select {carrier.restore_sql('c')} as v, n"
            f" from unnest(%s::{form}[]) with ordinality as u(c, n)) back join held using (n) order by n",
            (values,),
        ).fetchall()

    def compared(self, operator: str) -> list[bool]:
        """What PostgreSQL says of every pair of values, in order."""
        found = self.connection.execute(
            f"select a.v {operator} b.v from held a, held b where a.n <= %s and b.n <= %s order by a.n, b.n",
            (self.count, self.count),
        )
        return [verdict for (verdict,) in found]


@pytest.fixture
def columns(connection):
    """Makes a column of each type in turn, holding its values."""
    connection.execute("create type pg_temp.mood as enum ('sad', 'happy')")
    connection.execute("create domain pg_temp.amount as numeric(10,2)")

    def create(values: Mapping[str, list[str]]) -> Iterator[Column]:
        for type_, held in values.items():
            place = {"mood": "pg_temp.mood", "amount": "pg_temp.amount"}.get(type_, type_)
            connection.execute(f"create temporary table held (n int, v {place})")
            for number, value in enumerate([*held, None], start=1):
                connection.execute(sql.SQL("insert into held values ({}, {})").format(number, value))
            (described,) = expression_types(connection, "pg_temp.held as t", ["t.v"])
            yield Column(connection, described, len(held))
            connection.execute("drop table held")

    return create


def test_a_value_comes_back_as_it_was(columns):
    for held in columns(NASTY):
        carrier = verbatim(held.type)
        pairs = held.restored(carrier, held.carried(carrier))
        assert (held.type.text, [was for was, back in pairs if was != back]) == (held.type.text, [])


def test_a_compared_value_comes_back_equal(columns):
    for held in columns(NASTY):
        carrier = carrier_of(held.type)
        pairs = held.restored(carrier, held.carried(carrier))
        if held.type.base == "numeric":
            pairs = [(trimmed(was), trimmed(back)) for was, back in pairs]
        assert (held.type.text, [was for was, back in pairs if was != back]) == (held.type.text, [])


def test_carried_values_are_equal_where_values_are(columns):
    for held in columns(NASTY):
        carrier = carrier_of(held.type)
        if carrier.equality:
            assert (held.type.text, agreement(held, carrier, "=", eq)) == (held.type.text, [])


def test_carried_values_are_ordered_as_values_are(columns):
    for held in columns(NASTY):
        carrier = carrier_of(held.type)
        if carrier.ordering:
            assert (held.type.text, agreement(held, carrier, "<", lt)) == (held.type.text, [])


def test_a_number_to_compute_with_is_exact(columns):
    for held in columns(SCALED):
        carrier = decimal(held.type, held.type.scale or 0)
        pairs = held.restored(carrier, held.carried(carrier))
        assert [was for was, back in pairs if was != back] == []
        assert agreement(held, carrier, "<", lt) == []


def agreement(
    held: Column, carrier: Carrier, operator: str, compare: Callable[[Any, Any], bool]
) -> list[tuple[Any, Any]]:
    """The pairs of carried values of which Spark would say something else than PostgreSQL."""
    values = held.carried(carrier)[:-1]
    pairs = [(a, b) for a in values for b in values]
    verdicts = held.compared(operator)
    return [
        pair
        for pair, verdict in zip(pairs, verdicts, strict=True)
        if compare(spark_order(pair[0]), spark_order(pair[1])) != verdict
    ]


def spark_order(value: Any) -> Any:
    """A value such that Python compares it as Spark does: texts by bytes, NaN above all and itself."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value


def trimmed(number: str | None) -> str | None:
    """A number without trailing zeros: which of two equal ones stands for both is open."""
    if number is None or "." not in number:
        return number
    return number.rstrip("0").rstrip(".")
