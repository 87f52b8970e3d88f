"""Sources, views and functions that are altered under a stream table."""

from __future__ import annotations

import pytest

from pgtrickle.commands.refresh import refresh as ask_for
from pgtrickle.model.errors import PgTrickleError
from pgtrickle.model.stream_table import Action
from tests.fixtures.bags import assert_same_bag

ANY = frozenset(Action)


@pytest.fixture
def items(source):
    return source(
        "items(id int primary key, g int, v int, note text)", rows=[(n, n % 3, n, "x") for n in range(1, 7)]
    )


QUERIES = (
    "select id, v from items",
    "select g, count(*) as n, sum(v) as s, max(v) as top from items group by g",
)


@pytest.mark.parametrize(
    "alteration",
    [
        "alter table items add column extra int default 5",
        "alter table items drop column note",
        "create index on items (g)",
        "alter table items add constraint positive check (v > -1000)",
        "alter table items rename column note to remark",
        "alter table items alter column v set not null",
        "comment on table items is 'nothing'",
    ],
)
def test_what_no_query_reads_may_be_altered_freely(items, followed, alteration):
    tables = followed(*QUERIES)
    tables.after("update items set v = v + 1", alteration, "delete from items where id = 1")
    tables.after("insert into items (id, g, v) values (10, 1, 1)")


def test_a_dropped_key_lets_duplicates_in(items, followed):
    tables = followed(*QUERIES, "select a.id, b.v from items a join items b on a.id = b.id")
    tables.after(
        "alter table items drop constraint items_pkey",
        "insert into items select * from items where id < 3",
        actions=ANY,
    )
    tables.after("insert into items select * from items where id = 1", "delete from items where id = 2")
    tables.after("delete from items where ctid = (select ctid from items where id = 1 limit 1)")


@pytest.mark.parametrize(
    "alteration",
    [
        "alter table items alter column v type bigint",
        "alter table items alter column v type numeric(10,2) using v / 2.0",
    ],
)
def test_a_retyped_column_is_loaded_anew_or_told_about(items, stream_table, alteration, engine):
    """Where the type of the result changes with it, the rows stay and the error says so."""
    tables = [stream_table(query) for query in QUERIES]
    items.change("update items set v = v + 1 where id = 1", alteration)
    for table in tables:
        before = table.rows()
        try:
            ask_for(engine, table.name)
        except PgTrickleError:
            assert sorted(table.rows()) == sorted(before)
        else:
            table.equals_its_query()


@pytest.mark.parametrize(
    ("alteration", "says"),
    [
        ("alter table items rename column v to value", "value"),
        ("alter table items rename to things", "things"),
    ],
)
def test_a_renamed_source_is_told_with_its_new_name(items, stream_table, engine, admin, alteration, says):
    tables = [stream_table(query) for query in QUERIES]
    items.change("update items set v = v + 1 where id = 1", alteration)
    for table in tables:
        before = table.rows()
        with pytest.raises(PgTrickleError, match=says):
            ask_for(engine, table.name)
        assert sorted(table.rows()) == sorted(before)
        assert _status(admin, table) == "ERROR"


@pytest.mark.light
def test_a_dropped_column_is_told_and_the_others_go_on(items, stream_table, engine, admin):
    broken = stream_table("select id, note from items")
    fine = stream_table(QUERIES[1])
    before = broken.rows()
    items.change("alter table items drop column note", "update items set v = v + 1")
    with pytest.raises(PgTrickleError):
        ask_for(engine, broken.name)
    ask_for(engine, fine.name)
    fine.equals_its_query()
    assert sorted(broken.rows()) == sorted(before)
    assert _status(admin, broken) == "ERROR"
    assert _status(admin, fine) == "ACTIVE"


def test_a_dropped_source_is_told_and_the_others_go_on(items, source, stream_table, engine, admin):
    source("other(id int primary key, item int)", rows=[(1, 1), (2, 2)])
    broken = stream_table("select o.id, i.v from other o join items i on i.id = o.item")
    fine = stream_table("select item, count(*) as n from other group by item")
    before = broken.rows()
    items.change("drop table items cascade", "insert into other values (3, 1)")
    with pytest.raises(PgTrickleError, match="items"):
        ask_for(engine, broken.name)
    ask_for(engine, fine.name)
    fine.equals_its_query()
    assert sorted(broken.rows()) == sorted(before)
    assert _status(admin, broken) == "ERROR"
    assert _status(admin, fine) == "ACTIVE"


def _status(admin, table):
    return admin.execute(
        "select status from pgtrickle.pgt_stream_tables where pgt_name = %s", (table.name,)
    ).fetchone()[0]


@pytest.mark.light
def test_a_replaced_view_or_function_is_followed(items, followed, app, admin):
    app.execute("create view low as select id, g, v from items where v < 3")
    app.execute("create view lower as select id, g from low where g > 0")
    app.execute("grant select on low, lower to trickle")
    admin.execute("create function twice(n int) returns int immutable language sql return n * 2")
    tables = followed(
        "select id, g from lower",
        "select g, count(*) as n from low group by g",
        "select id, twice(v) as w from items",
        "select twice(g) as g, sum(v) as s from items group by twice(g)",
    )
    tables.after("update items set v = v - 1")
    tables.after("create or replace view low as select id, g, v from items where v < 5", actions=ANY)
    tables.after("update items set v = v - 1", "insert into items values (20, 1, 4, null)")
    admin.execute("create or replace function twice(n int) returns int immutable language sql return n * 3")
    tables.after("delete from items where id = 2", actions=ANY)
    tables.after("update items set g = g + 1, v = v + 1")


def test_a_renamed_stream_table_goes_on(items, stream_table, app, engine):
    table = stream_table(QUERIES[1], name="before")
    above = stream_table("select n, count(*) as c from before group by n")
    app.execute("alter table before rename to afterwards")
    items.change("update items set g = 1 where id < 4")
    assert ask_for(engine, "afterwards").action is Action.DIFFERENTIAL
    assert_same_bag(app, "select * from afterwards", table.query)
    with pytest.raises(PgTrickleError, match="afterwards"):
        ask_for(engine, above.name)
    app.execute("alter table afterwards rename to before")
    ask_for(engine, above.name)
    above.equals_its_query()


def test_a_swapped_table_is_followed_anew(items, followed, source):
    tables = followed(*QUERIES)
    source("fresh(id int primary key, g int, v int, note text)", rows=[(1, 1, 1, "a"), (2, 2, 2, "b")])
    tables.after("alter table items rename to old", "alter table fresh rename to items", actions=ANY)
    tables.after("insert into items values (3, 1, 5, null)", "delete from old")
