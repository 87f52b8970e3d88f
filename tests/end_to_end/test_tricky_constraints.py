"""Constraints and indexes that guarantee less than they seem to."""

from __future__ import annotations

import pytest

from pgtrickle.catalog.dependencies import poll_ground, settle

ASKED = [(1, 1), (2, 2), (None, 5), (9, 2)]
ABOUT_NULLS = (
    "select v from asked where k not in (select id from listed)",
    "select k, k in (select id from listed) as is_listed from asked",
    "select k from asked where exists (select from listed where listed.id is not distinct from asked.k)",
)
LOST = "delete from listed where id is null"


@pytest.fixture
def asked(source):
    return source("asked(k int, v int)", rows=ASKED)


def notice(engine) -> None:
    """What a running sidecar does once a second."""
    with engine.pool.autocommitting() as connection:
        for table in poll_ground(connection, None)[1]:
            settle(connection, table, waits=False)


@pytest.mark.on_postgres(18)
def test_not_null_that_is_not_valid(source, asked, followed):
    listed = source("listed(id int, v int)", rows=[(None, 1), (1, 3), (2, 4)])
    listed.change("alter table listed add constraint filled not null id not valid")
    tables = followed(*ABOUT_NULLS)
    tables.after("delete from asked where k = 1", "insert into asked values (8, 8)")
    tables.after(LOST)
    tables.after("insert into listed values (9, 1)", "insert into asked values (null, 7)")


@pytest.mark.on_postgres(18)
def test_a_unique_column_whose_not_null_is_not_valid_is_no_key(source, asked, followed):
    listed = source("listed(id int unique, v int)", rows=[(None, 1), (None, 2), (1, 3), (2, 4)])
    listed.change("alter table listed add constraint filled not null id not valid")
    tables = followed(
        "select id, v from listed",
        "select id, count(*) as n from listed group by id",
        "select a.k, count(*) as n from asked a left join listed g on g.id is not distinct from a.k"
        " group by a.k",
    )
    tables.after("delete from listed where v = 1")
    tables.after("insert into listed values (9, 9)", "insert into asked values (null, 7)")
    tables.after(LOST)


@pytest.mark.on_postgres(15)
def test_a_child_without_the_not_null_of_its_parent(source, asked, followed):
    listed = source("listed(id int not null, v int)", rows=[(1, 3), (2, 4)])
    listed.change(
        "create table more_listed() inherits (listed)",
        "grant select, trigger on more_listed to trickle",
        "alter table more_listed alter column id drop not null",
        "insert into more_listed values (null, 1)",
    )
    tables = followed(*ABOUT_NULLS)
    tables.after("delete from asked where k = 1", "insert into asked values (8, 8)")
    tables.after(LOST)
    tables.after("insert into more_listed values (9, 1), (null, 2)")


@pytest.mark.every_postgres
def test_not_null_is_dropped_under_a_running_sidecar(source, asked, followed, engine):
    """The sidecar notices the alteration by itself, before a refresh can."""
    listed = source("listed(id int not null, v int)", rows=[(1, 3), (2, 4)])
    tables = followed(*ABOUT_NULLS)
    tables.after("insert into asked values (8, 8)")
    listed.change("alter table listed alter column id drop not null")
    notice(engine)
    tables.after("insert into listed values (null, 1)", "delete from asked where k = 2")
    tables.after(LOST)
    listed.change("alter table listed alter column id set not null")
    notice(engine)
    tables.after("insert into listed values (8, 1)")
    tables.stand_still()


KEYED_BY_LOOKS = (
    "select a.v from asked_for a left join listed g on g.p = a.p",
    "select p, v from listed",
    "select a.v, g.v as found from asked_for a join listed g on g.p = a.p",
    "select a.v, (select g.v from listed g where g.p = a.p and g.v > 2) as found from asked_for a",
)


@pytest.mark.every_postgres
def test_a_unique_index_that_distinguishes_equal_rows_is_no_key(source, followed, app):
    app.execute("create type price as (amount numeric)")
    listed = source("listed(p price not null, v int)", rows=[("(1.0)", 1), ("(1.00)", 2), ("(2)", 4)])
    listed.change("create unique index on listed (p record_image_ops)")
    source("asked_for(p price, v int)", rows=[("(1)", 5), ("(2.0)", 6)])
    tables = followed(*KEYED_BY_LOOKS)
    tables.after("update listed set v = v + 10 where v = 1", "insert into asked_for values (row(1.000), 7)")
    tables.after("delete from listed where v = 2", "delete from asked_for where v = 5")


@pytest.mark.on_postgres(15)
def test_a_unique_index_of_another_collation_is_no_key(source, followed, app):
    app.execute(
        "create collation caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
    )
    listed = source("listed(p text collate caseless not null, v int)", rows=[("a", 1), ("A", 2), ("b", 4)])
    listed.change('create unique index on listed (p collate "C")')
    source("asked_for(p text collate caseless, v int)", rows=[("a", 5), ("B", 6)])
    tables = followed(*KEYED_BY_LOOKS)
    tables.after("update listed set v = v + 10 where v = 1", "insert into asked_for values ('A', 7)")
    tables.after("delete from listed where v = 2", "delete from asked_for where v = 5")
