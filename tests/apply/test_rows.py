"""Weighted rows go into a stream table exactly as often as they count."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pgtrickle.apply import Applied, create_query_staging, replace_from_query_staging, stored_table
from pgtrickle.model.errors import Diverged
from pgtrickle.plan.program import Output, RowsTarget
from tests.apply.conftest import Streams
from tests.apply.stream import STATE, Row, create_stream, field, outputs
from tests.fixtures.lanes import examples

AWKWARD = {
    "number": "integer",
    "weight": "text",
    "o1": "json",
    'a "b" 100%': "numeric(12,3)",
    "at": "timestamp with time zone",
}
BAG = RowsTarget(
    tuple(field(f"f{n}", pg_type) for n, pg_type in enumerate(AWKWARD.values())),
    tuple(Output(name, pg_type, f'"f{n}"') for n, (name, pg_type) in enumerate(AWKWARD.items())),
    None,
)
KEYED = {"id": "integer", "text": "text", "amount": "numeric"}
BY_KEY = RowsTarget(tuple(field(*column) for column in KEYED.items()), outputs(KEYED), ("id",))

INFINITY = 2**63 - 1
awkward_rows = st.tuples(
    st.sampled_from([None, 0, -1]),
    st.sampled_from([None, "", 'it\'s "x"\n\\N,{}', "NULL", "%s"]),
    st.sampled_from([None, '{"a": 1}', "[1,  2]"]),
    st.sampled_from([None, "1.5", "-123456789.125"]),
    st.sampled_from([None, INFINITY, -INFINITY - 1, 0, -12_345_678_901_234]),
)
law = settings(
    max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def weighted(before: Counter[Row], after: Counter[Row]) -> list[Row]:
    """The change between two bags, with a row that comes and goes to be folded away."""
    change = [(*row, after[row] - before[row]) for row in {*before, *after} if after[row] != before[row]]
    return [*change, (9, "x", None, None, None, 2), (9, "x", None, None, None, -2)]


def stored_text(stream, rows: Counter[Row]) -> Counter[str]:
    """What the rows look like in the table, by PostgreSQL's own casts."""
    with_copies = [(*row, copies) for row, copies in rows.items() if copies]
    stream.run(f"create temp table wanted on commit drop as select * from {stream.name.sql} where false")
    for number, text, document, amount, at, copies in with_copies:
        time = {
            INFINITY: "infinity",
            -INFINITY - 1: "-infinity",
            None: None,
            0: "2000-01-01 00:00:00+00",
        }.get(at, "1999-08-11 02:38:41.098766+00")
        stream.run(
            "insert into wanted select %s::int, %s::text, %s::json, %s::numeric(12,3), %s::timestamptz"
            " from generate_series(1, %s)",
            *(number, text, document, amount, time, copies),
        )
    found = Counter(row for (row,) in stream.run("select w::text from wanted w"))
    stream.run("drop table wanted")
    return found


@law
@given(bags=st.lists(st.lists(awkward_rows, max_size=6).map(Counter), min_size=1, max_size=4))
def test_a_bag_follows_its_changes(streams: Streams, bags):
    with streams(BAG) as stream:
        before: Counter[Row] = Counter()
        for after in bags:
            untouched = {*stored_text(stream, before & after)} - {*stored_text(stream, before - after)}
            places = stream.versions()
            applied = stream.change(weighted(before, after))
            assert stream.rows() == stored_text(stream, after)
            assert applied == Applied((after - before).total(), (before - after).total())
            assert all(places[row] <= stream.versions()[row] for row in untouched)
            before = after


@law
@given(bags=st.lists(st.lists(awkward_rows, max_size=6).map(Counter), min_size=1, max_size=3))
def test_a_bag_is_replaced_by_its_difference(streams: Streams, bags):
    with streams(BAG) as stream:
        before: Counter[Row] = Counter()
        for after in bags:
            applied = stream.replace([(*row, copies) for row, copies in after.items()])
            assert stream.rows() == stored_text(stream, after)
            assert applied == Applied((after - before).total(), (before - after).total())
            before = after


keyed_tables = st.dictionaries(
    st.integers(1, 5),
    st.tuples(st.sampled_from([None, "a", "b"]), st.sampled_from([None, "1", "1.0", "2.50"])),
)


def as_text(table: dict[int, Row]) -> Counter[str]:
    return Counter(f"({key},{text or ''},{amount or ''})" for key, (text, amount) in table.items())


@law
@given(tables=st.lists(keyed_tables, min_size=1, max_size=4), by_replacing=st.booleans())
def test_a_keyed_table_follows_its_changes(streams: Streams, tables, by_replacing):
    with streams(BY_KEY) as stream:
        stream.run('create unique index on streams.stream ("id")')
        before: dict[int, Row] = {}
        for after in tables:
            places = stream.versions()
            gone = [(*_flat(item), -1) for item in before.items() - after.items()]
            come = [(*_flat(item), 1) for item in after.items() - before.items()]
            if by_replacing:
                applied = stream.replace([(*_flat(item), 1) for item in after.items()])
            else:
                applied = stream.change([*come, *gone])
            assert stream.rows() == as_text(after)
            assert applied == Applied(len(come), len(gone))
            same = as_text(dict(before.items() & after.items()))
            assert all(places[row] == stream.versions()[row] for row in same)
            before = after


def _flat(item: tuple[int, Row]) -> Row:
    key, values = item
    return (key, *values)


def test_a_row_that_changes_under_its_key_is_updated(connection):
    stream = create_stream(connection, BY_KEY)
    stream.run("create table streams.log (operation text)")
    stream.run(
        "create function streams.note() returns trigger language plpgsql as"
        " 'begin insert into streams.log values (tg_op); return null; end'"
    )
    stream.run(
        "create trigger note after insert or update or delete on streams.stream"
        " for each row execute function streams.note()"
    )
    stream.change([(1, "a", "1", 1), (2, "b", "2", 1)])
    stream.run("truncate streams.log")
    assert stream.change([(1, "a", "1", -1), (1, "z", "1", 1), (2, "b", "2", -1)]) == Applied(1, 2)
    assert sorted(stream.run("table streams.log")) == [("DELETE",), ("UPDATE",)]


def test_a_row_leaves_before_another_takes_its_unique_value(connection):
    stream = create_stream(connection, BY_KEY)
    stream.run('create unique index on streams.stream ("text")')
    stream.change([(1, "a", "1", 1)])
    stream.change([(2, "a", "1", 1), (1, "a", "1", -1)])
    assert stream.rows() == Counter(["(2,a,1)"])


@pytest.mark.parametrize("target", [BAG, BY_KEY], ids=["bag", "keyed"])
def test_a_missing_row_is_a_divergence(connection, target):
    stream = create_stream(connection, target)
    row = (1, "lost", "{}", "1", 0) if target is BAG else (1, "lost", "1")
    stream.change([(*row, 1)])
    stream.run("set local pgtrickle.applying = 'on'")
    with pytest.raises(Diverged, match=r"streams\.stream .*2 x \(1,lost,.* expected, found 1"):
        stream.change([(*row, -2)])


def test_a_suppressed_row_is_a_divergence(connection):
    stream = create_stream(connection, BY_KEY)
    stream.run("create function streams.no() returns trigger language plpgsql as 'begin return null; end'")
    stream.run("create trigger no before insert on streams.stream for each row execute function streams.no()")
    with pytest.raises(Diverged, match="not every row could be written"):
        stream.change([(1, "a", "1", 1)])


def test_the_answer_of_a_query_replaces_all_rows(connection):
    stream = create_stream(connection, BAG)
    columns = stream.target.outputs
    staging = create_query_staging(connection, STATE, columns)
    for query, expected in [
        ("select g, 'a', '{}'::json, 1, now() from generate_series(1, 5) g", Applied(5, 0)),
        ("select g / 2, 'a', '{}'::json, 1, now() from generate_series(4, 9) g", Applied(3, 2)),
        ("select g, 'a', '{}'::json, 1, now() from generate_series(1, 0) g", Applied(0, 6)),
    ]:
        stream.run(f"truncate {staging.sql}")
        stream.run(f"insert into {staging.sql} {query}")
        assert expected == replace_from_query_staging(
            connection, stored_table(stream.name, stream.matches, columns, None), staging
        )
        assert stream.rows() == Counter(r for (r,) in stream.run(f"select t::text from {staging.sql} t"))
