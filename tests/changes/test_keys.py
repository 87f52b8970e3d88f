"""The condition of a lookup finds in PostgreSQL the rows whose keys are given, and at least those."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from pgtrickle.changes import keys as keys_module
from pgtrickle.changes.keys import ALWAYS, NEVER, KeyQuery, LookupKeys, any_of
from pgtrickle.postgres.arrow import arrow_schema
from pgtrickle.postgres.connection import sql
from tests.changes.reads import KEYS, field, lookup

VALUES = {
    "boolean": ("true", "false"),
    "integer": ("-1", "2147483647"),
    "bigint": ("9223372036854775807", "0"),
    "double precision": ("0.1", "Infinity"),
    "numeric": ("1.50", "1.5000001"),
    "numeric(10,2)": ("-3.10", "3.10"),
    "text": ('it\'s, "here"', ""),
    "character varying(5)": ("a\\b", "{c}"),
    "character(4)": ("ab", "abcd"),
    "bytea": ("\\x00ff", "\\x"),
    "uuid": ("11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"),
    "date": ("infinity", "4713-01-01 BC"),
    "timestamp with time zone": ("-infinity", "2024-02-29 12:00:00.000001+00"),
    "jsonb": ('{"a": [1, null]}', "{}"),
    "integer[]": ("{1,NULL,2}", "{}"),
}


@pytest.fixture
def found(connection):
    """Which of the rows `first`, `second` and `null` a condition finds."""

    def rows(condition: sql.Composable) -> set[str]:
        query = sql.SQL("select t.row from given as t where {}").format(condition)
        return {name for (name,) in connection.execute(query)}

    return rows


@pytest.fixture
def given(connection):
    """Fills `given` with two values of a type and a null; returns a carried key."""

    def fill(type_name: str) -> pa.Table:
        first, second = VALUES[type_name]
        connection.execute(f"create temporary table given(row text, k {type_name})")
        connection.execute(
            "insert into given values ('first', %s), ('second', %s), ('null', null)", (first, second)
        )
        key = field("k", type_name)
        carried = connection.execute(
            f"select {key.carrier.carry_sql('t.k')} from given as t where t.row = 'first'"
        ).fetchone()[0]
        schema = arrow_schema([key])
        value = Decimal(carried) if pa.types.is_decimal(schema.field(0).type) else carried
        return pa.table({"k": pa.array([value, None], schema.field(0).type)})

    return fill


@pytest.mark.parametrize("type_name", VALUES)
def test_a_key_of_any_type_finds_its_row_and_no_other(given, found, type_name):
    tables = {KEYS: given(type_name)}
    assert found(any_of((lookup(("k", type_name)),), LookupKeys(tables))) == {"first"}
    null_safe = lookup(("k", type_name), is_null_safe=True)
    assert found(any_of((null_safe,), LookupKeys(tables))) == {"first", "null"}


@pytest.mark.parametrize("type_name", VALUES)
def test_a_key_that_postgres_has_to_find_by_itself_finds_at_least_its_row(given, found, type_name):
    given(type_name)
    key = field("k", type_name)
    query = sql.SQL("select {} as k from given as t where t.row = 'first'").format(
        sql.SQL(key.carrier.carry_sql("t.k"))
    )
    asked = LookupKeys({}, {KEYS: KeyQuery(query, 1)})
    condition = any_of((lookup(("k", type_name)),), asked)
    expected = {"first", "second", "null"} if type_name.endswith("[]") else {"first"}
    assert found(condition) == expected


def ids(*values: int) -> pa.Table:
    return pa.table({"k": pa.array(values, pa.int32())})


BY_K = lookup(("k", "integer"))


def test_one_of_several_lookups_is_enough(given, found):
    given("integer")
    other = lookup(("k", "integer"), provider="others")
    first, second = (int(value) for value in VALUES["integer"])
    tables = LookupKeys({KEYS: ids(first), "others": ids(second)})
    assert found(any_of((BY_K, other), tables)) == {"first", "second"}


def test_no_keys_at_all_find_nothing():
    assert any_of((BY_K,), LookupKeys({KEYS: ids()})) is NEVER
    assert any_of((), LookupKeys({})) is NEVER


def test_a_lookup_whose_keys_are_unknown_finds_every_row():
    assert any_of((BY_K,), None) is ALWAYS
    assert any_of((BY_K,), LookupKeys({})) is ALWAYS


def test_too_many_keys_find_every_row(monkeypatch):
    monkeypatch.setattr(keys_module, "MANY", 2)
    assert any_of((BY_K,), LookupKeys({KEYS: ids(1, 2, 2)})) is not ALWAYS
    assert any_of((BY_K,), LookupKeys({KEYS: ids(1, 2, 3)})) is ALWAYS


def test_keys_that_are_too_long_find_every_row(monkeypatch):
    monkeypatch.setattr(keys_module, "MANY_BYTES", 100)
    by_name = lookup(("k", "text"))
    assert any_of((by_name,), LookupKeys({KEYS: pa.table({"k": ["x" * 200]})})) is ALWAYS


def test_keys_that_mark_rows_are_never_asked_for():
    """An earlier and a later read must agree about what a lookup finds."""
    asked = LookupKeys({}, {KEYS: KeyQuery(sql.SQL("select 1 as k"), 1)}, marked=frozenset({BY_K}))
    assert any_of((BY_K,), asked) is ALWAYS
