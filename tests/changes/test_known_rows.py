"""Rows that an earlier read has found are taken from there, and only the others are read."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgtrickle.changes.kept_rows import matching_rows
from pgtrickle.changes.keys import LookupKeys
from pgtrickle.changes.known_rows import known_rows
from pgtrickle.plan.reads import AGAIN, WEIGHT, Lookup, Read
from tests.changes.reads import lookup, rows_of, rows_read, table_source

SOURCE = table_source(100, id="integer", kind="integer", name="text")
WHOLE = pa.table(
    {
        "id": pa.array([*range(12), None], pa.int32()),
        "kind": pa.array([number % 5 for number in range(13)], pa.int32()),
        "name": [f"n{number}" for number in range(13)],
        WEIGHT: pa.array([1] * 13, pa.int64()),
    }
)
BY_ID = lookup(("id", "integer"), provider="first")
KEYS = st.lists(st.one_of(st.none(), st.integers(0, 14)), max_size=8)


def read_by(asked: Lookup, *earlier: Lookup, name: str = "read") -> Read:
    return replace(rows_read(SOURCE, "id", "kind", "name", lookups=(asked,)), earlier=earlier, name=name)


def keys(**named: list[int | None]) -> dict[str, pa.Table]:
    """The rows of reads that give keys, each under the names `id` and `kind`."""
    return {
        name: pa.table({"id": pa.array(values, pa.int32()), "kind": pa.array(values, pa.int32())})
        for name, values in named.items()
    }


def answer(read: Read, tables: dict[str, pa.Table]) -> pa.Table:
    """What PostgreSQL would answer."""
    rows = matching_rows(WHOLE, read, tables)
    return rows.select([*(f.name for f in read.fields), *([AGAIN] if read.earlier else []), WEIGHT])


@given(first=KEYS, second=KEYS, third=KEYS, by_kind=KEYS)
def test_the_rows_are_those_that_the_whole_read_would_find(first, second, third, by_kind):
    tables = keys(first=first, second=second, third=third, by_kind=by_kind)
    other = lookup(("kind", "integer"), provider="by_kind")
    again, last = replace_provider("second"), replace_provider("third")
    reads = [
        read_by(BY_ID, name="one"),
        read_by(other, BY_ID, name="two"),
        read_by(again, BY_ID, other, name="three"),
        read_by(last, BY_ID, other, again, name="four"),
    ]
    for number, read in enumerate(reads):
        found = known_rows(read, reads[:number], LookupKeys(tables))
        if found is None:
            tables[read.name] = answer(read, tables)
            continue
        rest = None if found.others is None else answer(found.others, dict(found.keys.tables))
        tables[read.name] = found.with_others(rest)
        assert rows_of(tables[read.name]) == rows_of(answer(read, tables))


def replace_provider(name: str) -> Lookup:
    return lookup(("id", "integer"), provider=name)


def test_nothing_is_asked_if_all_keys_were_asked_for():
    tables = keys(first=[1, 2, 3], second=[2, 3, None])
    one = read_by(BY_ID, name="one")
    tables["one"] = answer(one, tables)
    found = known_rows(read_by(replace_provider("second"), BY_ID), [one], LookupKeys(tables))
    assert found is not None
    assert found.others is None
    assert found.rows.column("id").to_pylist() == [2, 3]
    assert found.rows.column(AGAIN).to_pylist() == [True, True]


@pytest.mark.parametrize(
    "wanted",
    [
        lookup(("kind", "integer"), provider="second"),
        lookup(("id", "integer"), provider="second", is_null_safe=True),
        lookup(("id", "integer"), ("kind", "integer"), provider="second"),
        replace(replace_provider("second"), comparison="<"),
    ],
    ids=["another column", "nulls count", "two columns", "a range"],
)
def test_other_lookups_are_asked_as_they_are(wanted):
    tables = keys(first=[1, 2, 3], second=[2, 3])
    one = read_by(BY_ID, name="one")
    tables["one"] = answer(one, tables)
    assert known_rows(read_by(wanted, BY_ID), [one], LookupKeys(tables)) is None


def test_rows_under_another_condition_are_not_taken():
    tables = keys(first=[1, 2, 3], second=[2, 3])
    one = read_by(BY_ID, name="one")
    tables["one"] = answer(one, tables)
    other = replace(read_by(replace_provider("second"), BY_ID), condition="t.kind > 2")
    assert known_rows(other, [one], LookupKeys(tables)) is None
