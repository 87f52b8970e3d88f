"""The reads of a program: each query is asked once, and joins of parts are planned without loops."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from pgtrickle.changes import read as reading
from pgtrickle.changes.memory import Memory
from pgtrickle.changes.read import read_all
from pgtrickle.changes.relations import Ends
from pgtrickle.model.carrier import Field
from pgtrickle.model.frontier import Frontier
from pgtrickle.plan.carriers import carrier_of
from pgtrickle.plan.reads import Part, Read, ReadKind
from pgtrickle.postgres.arrow import read_batches
from tests.changes.reads import KEYS, lookup, pg_type, rows_of, rows_read, table_source

ENDS = Ends(lambda source: Frontier(1, 1), None, datetime(2024, 1, 1, tzinfo=UTC))
T = table_source(100, id="integer", name="text")


@pytest.fixture
def asked(monkeypatch):
    """The statements that reads send."""
    sent = []

    def record(connection, query, schema, **options):
        sent.append(query.as_string(connection))
        return read_batches(connection, query, schema, **options)

    monkeypatch.setattr(reading, "read_batches", record)
    return sent


@pytest.fixture
def t(source, connection):
    source("t(id int, name text)", rows=[(n, f"n{n}") for n in range(1, 10)])
    return connection


def read(connection, *reads: Read, **given: pa.Table) -> dict[str, pa.Table]:
    return read_all(reads, connection, ENDS, Memory(lambda: 1 << 30).holding(), given=given)


def test_the_same_rows_are_read_once_under_both_names(t, asked):
    by_id = lookup(("id", "integer"))
    one = replace(rows_read(T, "id", "name", lookups=(by_id,)), name="one")
    fields = tuple(replace(field, name=f"other {field.name}") for field in one.fields)
    two = replace(one, name="two", fields=fields)
    found = read(t, one, two, **{KEYS: pa.table({"id": pa.array([2, 3, 40], pa.int32())})})
    assert len(asked) == 1
    assert rows_of(found["one"]) == rows_of(found["two"]) == [(2, "n2", 1), (3, "n3", 1)]
    assert found["two"].column_names == ["other id", "other name", "weight"]


def test_other_columns_or_keys_are_read_by_themselves(t, asked):
    by_id = lookup(("id", "integer"))
    one = replace(rows_read(T, "id", "name", lookups=(by_id,)), name="one")
    two = replace(rows_read(T, "name", lookups=(by_id,)), name="two")
    three = replace(one, name="three", lookups=(lookup(("id", "integer"), provider="more"),))
    numbers = {KEYS: [2], "more": [2, 5]}
    given = {name: pa.table({"id": pa.array(ids, pa.int32())}) for name, ids in numbers.items()}
    found = read(t, one, two, three, **given)
    assert len(asked) == 3
    assert [found[name].num_rows for name in ("one", "two", "three")] == [1, 1, 2]


def test_answers_over_several_parts_are_planned_without_loops_over_all_rows(t):
    part = Part("p", replace(rows_read(T, "id"), name="rows_of_t"), None, is_reached=True)
    answer = Read(
        name="answer",
        kind=ReadKind.ANSWER,
        source=None,
        query="select current_setting('enable_material') as planned from p, q where p.id = q.id and p.id = 1",
        fields=(Field("planned", carrier_of(pg_type("text"))),),
        expressions=('t."planned"',),
        parts=(part, replace(part, name="q")),
    )
    assert read(t, answer)["answer"].column("planned").to_pylist() == ["off"]
    assert t.execute("show enable_material").fetchone() == ("on",)
