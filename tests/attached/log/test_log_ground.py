"""What happens to tables that are followed by their log: definitions, rights, the publication."""

from __future__ import annotations

import pytest

from pgtrickle.capture.attached.log.server import PUBLICATION
from pgtrickle.model.errors import AttachedFailed
from pgtrickle.model.stream_table import Action
from tests.attached.conftest import refresh_by_name
from tests.attached.log.conftest import READER, Logged

pytestmark = [pytest.mark.database, pytest.mark.slow]

QUERY = "select id::bigint as id, name || '' as name from crm.public.people"


@pytest.fixture
def people(attached: Logged, app):
    attached.table("id int primary key, name text not null, age int", "people")
    attached.app.execute("insert into people select g, 'p' || g, g from generate_series(1, 9) g")
    app.execute("select pgtrickle.create_stream_table('copied', %s)", (QUERY,))
    refresh_by_name(attached.engine, "copied")
    return attached


def follow_and_check(people: Logged, name: str = "copied", query: str = QUERY) -> None:
    refresh_by_name(people.engine, name)
    people.check(name, query, "people")
    people.follow(compares=True)


@pytest.mark.parametrize(
    "change",
    [
        "truncate people; insert into people values (2, 'two', 2)",
        "alter table people alter column id type bigint; update people set id = 3000000000 where id = 3",
        "alter table people add unique (name); alter table people alter column name set not null;"
        " alter table people replica identity using index people_name_key",
        *(
            pytest.param(change, marks=pytest.mark.thorough)
            for change in (
                "alter table people add column city text default 'x'",
                "alter table people drop column age",
                "alter table people alter column name type varchar(40)",
                "alter table people alter column name drop not null;"
                " update people set name = null where id = 2",
                "alter table people drop constraint people_pkey; alter table people replica identity full;"
                " insert into people values (1, 'again', 1)",
            )
        ),
    ],
)
def test_an_altered_table_is_followed(people, change):
    people.app.execute("update people set name = 'before' where id = 4")
    people.app.execute(change)
    people.app.execute("delete from people where id = 5")
    follow_and_check(people)
    people.app.execute("update people set name = 'after' where id = 2")
    assert refresh_by_name(people.engine, "copied").action is not Action.NO_DATA
    people.check("copied", QUERY, "people")


def test_a_dropped_table_stops_its_readers_and_one_of_that_name_is_read_again(people, app):
    people.table("id int primary key", "others")
    app.execute("select pgtrickle.create_stream_table('beside', 'select id from crm.public.others')")
    people.app.execute("insert into others values (1)")
    people.app.execute("drop table people")
    with pytest.raises(AttachedFailed, match=r"crm\.public\.people cannot be read: there is no such table"):
        refresh_by_name(people.engine, "copied")
    refresh_by_name(people.engine, "beside")
    people.check("beside", "select id from crm.public.others", "others")
    people.app.execute("create table people (id int primary key, name text, age int)")
    people.app.execute(f"grant select on people to {READER}; insert into people values (1, 'new', 2)")
    with pytest.raises(AttachedFailed, match="not in the publication pgtrickle_attached; run there: alter"):
        refresh_by_name(people.engine, "copied")
    people.publish("people")
    follow_and_check(people)


@pytest.mark.thorough
def test_a_renamed_table_stops_its_readers(people):
    people.app.execute("alter table people rename to persons")
    with pytest.raises(AttachedFailed, match="there is no such table"):
        refresh_by_name(people.engine, "copied")
    people.app.execute("update persons set name = 'elsewhere'; alter table persons rename to people")
    follow_and_check(people)


def test_rights_that_are_revoked_are_told(people):
    people.app.execute(f"revoke select on people from {READER}")
    with pytest.raises(AttachedFailed, match="may not read it there"):
        refresh_by_name(people.engine, "copied")
    people.app.execute(f"grant select on people to {READER}")
    people.app.execute("update people set name = 'after' where id = 1")
    follow_and_check(people)
    people.app.execute("alter table people enable row level security")
    with pytest.raises(AttachedFailed, match="row-level security"):
        refresh_by_name(people.engine, "copied")


def test_a_publication_that_was_altered_between_two_polls_is_noticed(people):
    people.admin.execute(f"alter publication {PUBLICATION} drop table people")
    people.app.execute("update people set name = 'unpublished' where id = 2")
    people.publish("people")
    follow_and_check(people)
    people.admin.execute(f"alter publication {PUBLICATION} set (publish = 'insert')")
    people.app.execute("delete from people where id = 3")
    with pytest.raises(AttachedFailed, match="does not have all kinds of changes; run there: alter pub"):
        refresh_by_name(people.engine, "copied")
    people.admin.execute(
        f"alter publication {PUBLICATION} set (publish = 'insert, update, delete, truncate')"
    )
    follow_and_check(people)
    people.admin.execute(f"drop publication {PUBLICATION}")
    people.app.execute("delete from people where id = 4")
    with pytest.raises(AttachedFailed, match="run there: create publication pgtrickle_attached for table"):
        refresh_by_name(people.engine, "copied")
    people.publish("people")
    people.app.execute("delete from people where id = 6")
    follow_and_check(people)


@pytest.mark.thorough
@pytest.mark.on_postgres(18)
def test_a_publication_of_a_part_is_refused(people):
    people.admin.execute(f"alter publication {PUBLICATION} set table people where (id > 3)")
    with pytest.raises(AttachedFailed, match="has only some of its rows or columns"):
        refresh_by_name(people.engine, "copied")
    people.admin.execute(f"alter publication {PUBLICATION} drop table people")
    people.admin.execute(f"alter publication {PUBLICATION} add tables in schema public")
    follow_and_check(people)


def test_a_table_without_identity_is_refused_with_the_statement(people):
    people.app.execute(f"create table bag (a int); grant select on bag to {READER}")
    people.local.execute("select pgtrickle.declare_source('crm', 'public', 'bag')")
    people.follow()
    (told,) = people.local.execute(
        "select last_error from pgtrickle.attached_tables where origin_name = 'bag'"
    ).fetchone()
    assert told.endswith("run there: alter table public.bag replica identity full")
    people.app.execute("alter table bag replica identity full")
    people.publish("bag")
    people.declare("bag")


@pytest.mark.thorough
def test_more_columns_are_copied_when_a_query_reads_them(people, app):
    query = "select age, count(*) as n from crm.public.people group by age"
    people.app.execute("update people set age = 1 where id < 4")
    app.execute("select pgtrickle.create_stream_table('ages', %s)", (query,))
    follow_and_check(people, "ages", query)
    people.app.execute("update people set age = age + 1, name = name || '.'")
    follow_and_check(people, "ages", query)
    follow_and_check(people)


def test_large_values_that_do_not_change_are_kept(attached, app):
    attached.table("id int primary key, large text, small int, other text", "people")
    attached.app.execute("alter table people alter column large set storage external")
    attached.app.execute("alter table people alter column other set storage external")
    attached.app.execute(
        "insert into people select g, repeat(g::text, 9000), g, repeat('o', 5000)"
        " from generate_series(1, 6) g"
    )
    query = "select id, large, small, other from crm.public.people"
    app.execute("select pgtrickle.create_stream_table('copied', %s)", (query,))
    refresh_by_name(attached.engine, "copied")
    for change in (
        "update people set small = 0 where id = 1",
        "update people set id = 10 where id = 2",
        "update people set small = 5 where id = 10",
        "update people set other = 'short' where id = 10",
        "insert into people values (2, 'new', 1, 'o')",
        "update people set id = 11 where id = 3",
        "update people set id = 3 where id = 4",
        "update people set id = 4, large = repeat('n', 9000) where id = 11",
        "update people set small = 9 where id = 4",
        "delete from people where id = 5",
        "update people set id = 5 where id = 6",
    ):
        attached.app.execute(change)
    assert refresh_by_name(attached.engine, "copied").action is Action.DIFFERENTIAL
    attached.check("copied", query, "people")
    attached.follow(compares=True)


def test_partitions_are_followed_by_their_table(attached, app):
    attached.app.execute("create table people (id int primary key, v text) partition by range (id)")
    attached.app.execute("create table low partition of people for values from (0) to (100)")
    attached.app.execute("create table high partition of people for values from (100) to (200)")
    attached.app.execute(f"grant select on people to {READER}")
    attached.app.execute("insert into people select g, 'v' || g from generate_series(90, 110) g")
    attached.publish("people")
    attached.declare("people")
    query = "select id, v from crm.public.people"
    app.execute("select pgtrickle.create_stream_table('copied', %s)", (query,))
    refresh_by_name(attached.engine, "copied")
    attached.app.execute("update people set id = id + 20 where id between 95 and 99")
    attached.app.execute("insert into low values (1, 'directly'); delete from high where id = 110")
    assert refresh_by_name(attached.engine, "copied").action is Action.DIFFERENTIAL
    attached.check("copied", query, "people")
    for change in (
        "alter table people detach partition low",
        "update low set v = 'apart'; alter table people attach partition low for values from (0) to (100)",
        "truncate high",
        "create table more partition of people for values from (200) to (300);"
        " insert into people values (250, 'more')",
    ):
        attached.app.execute(change)
        attached.app.execute("insert into people values (150, 'x') on conflict (id) do update set v = 'y'")
        refresh_by_name(attached.engine, "copied")
        attached.check("copied", query, "people")
    attached.follow(compares=True)


@pytest.mark.every_postgres
def test_generated_columns_need_a_log_that_has_them(attached, app, pg_version):
    attached.table("id int primary key, name text, doubled int generated always as (id * 2) stored", "people")
    attached.app.execute("insert into people values (1, 'a')")
    app.execute("select pgtrickle.create_stream_table('copied', 'select id, name from crm.public.people')")
    refresh_by_name(attached.engine, "copied")
    attached.app.execute("insert into people values (2, 'b'); update people set name = 'c' where id = 1")
    refresh_by_name(attached.engine, "copied")
    attached.check("copied", "select id, name from crm.public.people", "people")
    query = "select id, doubled from crm.public.people"
    app.execute("select pgtrickle.create_stream_table('computed', %s)", (query,))
    with pytest.raises(AttachedFailed, match="column doubled is generated"):
        refresh_by_name(attached.engine, "computed")
    if pg_version >= 18:
        attached.admin.execute(f"alter publication {PUBLICATION} set (publish_generated_columns = stored)")
        attached.app.execute("insert into people values (3, 'd')")
        refresh_by_name(attached.engine, "computed")
        rows = app.execute("select * from computed order by 1").fetchall()
        assert rows == [(1, 2), (2, 4), (3, 6)]


@pytest.mark.on_postgres(18)
def test_a_table_is_not_published_if_its_updates_would_be_refused(attached, app):
    """Its replica identity contains a column that is never in the log."""
    attached.app.execute(
        "create table mine (id int primary key, v int, twice int generated always as (v * 2) virtual);"
        f" alter table mine replica identity full; grant select on mine to {READER}"
    )
    attached.admin.execute(
        f"grant create on database {attached.database.name} to {READER}; grant app to {READER}"
    )
    try:
        attached.local.execute("select pgtrickle.declare_source('crm', 'public', 'mine')")
        attached.follow()
        row = attached.local.execute("select last_error from pgtrickle.attached_tables").fetchone()
        assert "the replica identity of public.mine contains the generated column twice" in row[0]
        attached.app.execute("insert into mine values (1, 1); update mine set v = 2")
        # without it, the key is enough
        attached.app.execute("alter table mine replica identity default")
        attached.declare("mine")
        app.execute("select pgtrickle.create_stream_table('copied', 'select id, v from crm.public.mine')")
        refresh_by_name(attached.engine, "copied")
        attached.app.execute("update mine set v = 3")
        assert refresh_by_name(attached.engine, "copied").action is Action.DIFFERENTIAL
        attached.check("copied", "select id, v from crm.public.mine", "mine")
    finally:
        attached.admin.execute(f"revoke app from {READER}")


def test_a_role_that_may_publish_does_it_itself(attached, app):
    attached.app.execute(f"create table mine (id int primary key, v text); grant select on mine to {READER}")
    attached.admin.execute(
        f"grant create on database {attached.database.name} to {READER}; grant app to {READER}"
    )
    try:
        attached.declare("mine")
        app.execute("select pgtrickle.create_stream_table('copied', 'select id, v from crm.public.mine')")
        attached.app.execute("insert into mine values (1, 'a')")
        refresh_by_name(attached.engine, "copied")
        attached.app.execute("update mine set v = 'b'; insert into mine values (2, 'c')")
        assert refresh_by_name(attached.engine, "copied").action is Action.DIFFERENTIAL
        attached.check("copied", "select id, v from crm.public.mine", "mine")
        app.execute("select pgtrickle.drop_stream_table('copied')")
        attached.follow()
        # a slot that nobody needs would hold back the log
        assert attached.slots() == []
        attached.local.execute("select pgtrickle.detach_database('crm')")
        attached.follow()
        assert attached.engine.attached.list() == ()
        assert attached.admin.execute("select from pg_publication").fetchall() == []
    finally:
        attached.admin.execute(f"revoke app from {READER}")


@pytest.mark.thorough
@pytest.mark.parametrize("crm", ["LATIN1"], indirect=True)
def test_a_database_with_another_encoding_is_followed(crm, attached, app):
    attached.table('id int primary key, "größe" text', "people")
    query = 'select id, "größe" as v from crm.public.people'
    app.execute("select pgtrickle.create_stream_table('copied', %s)", (query,))
    attached.app.execute("insert into people values (1, 'é')")
    refresh_by_name(attached.engine, "copied")
    attached.app.execute(
        "insert into people values (2, 'ü\tö\\'); update people set \"größe\" = 'ß' where id = 1"
    )
    assert refresh_by_name(attached.engine, "copied").action is Action.DIFFERENTIAL
    assert app.execute("select * from copied order by id").fetchall() == [(1, "ß"), (2, "ü\tö\\")]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("numeric", ["1.0", "1.00", "7"]),
        ("double precision", ["0.1", "-0", "1e300"]),
        ("timestamptz", ["2026-01-01 00:00:00.000001+05", "infinity", "0044-03-15 BC"]),
        ("bytea", ["\\x00ff", "\\x", "\\x5c0a"]),
        ("interval", ["1 mon -3 days 00:00:01.5", "24:00:00", "2 days"]),
        ("text", ["a\tb", "\\N", ""]),
        ("int4range", ["[1,3)", "empty", "(,)"]),
        (
            "uuid",
            [
                "00000000-0000-0000-0000-000000000001",
                "00000000-0000-0000-0000-000000000002",
                "00000000-0000-0000-0000-000000000003",
            ],
        ),
    ],
)
def test_keys_and_values_of_any_type_are_followed(attached, app, kind, values):
    attached.table(f"k {kind} primary key, v {kind}, a {kind}[]", "people")
    query = "select k, v, a from crm.public.people"
    first, second, third = values
    app.execute("select pgtrickle.create_stream_table('copied', %s)", (query,))
    attached.app.execute("insert into people values (%s, %s, null)", (first, third))
    refresh_by_name(attached.engine, "copied")
    attached.app.execute("update people set k = %s where k = %s", (second, first))
    attached.app.execute("update people set v = null, a = array[k, null] where k = %s", (second,))
    attached.app.execute("insert into people values (%s, %s, '{}')", (third, first))
    assert refresh_by_name(attached.engine, "copied").action is Action.DIFFERENTIAL
    attached.check("copied", query, "people")
    attached.app.execute("delete from people where k = %s", (second,))
    attached.app.execute("insert into people values (%s, %s, null)", (first, second))
    attached.app.execute("update people set v = k")
    assert refresh_by_name(attached.engine, "copied").action is Action.DIFFERENTIAL
    attached.check("copied", query, "people")
    attached.follow(compares=True)
