"""Whatever statement changes a source, and however often a row changes in one window."""

from __future__ import annotations

import pytest

from pgtrickle.model.stream_table import Action

MAY_BE_FULL = frozenset(Action)
ITEMS = "items(id int primary key, g int, v int)"
QUERIES = (
    "select id, g, v from items",
    "select g, count(*) as n, sum(v) as s, max(v) as top from items group by g",
    "select g, array_agg(v order by id) as vs from items group by g",
    "select a.id, b.id as b from items a join items b on a.g = b.g",
)


@pytest.fixture
def items(source):
    return source(ITEMS, rows=[(n, n % 3, n * 10) for n in range(1, 7)])


def test_a_row_may_change_many_times_in_one_window(items, followed):
    tables = followed(*QUERIES)
    tables.after("insert into items values (9, 1, 1)", "delete from items where id = 9")
    tables.after(
        "insert into items values (9, 1, 1)",
        "update items set v = 2 where id = 9",
        "delete from items where id = 9",
    )
    tables.after("update items set v = 0 where id = 1", "update items set v = 10 where id = 1")
    tables.after("delete from items where id = 2", "insert into items values (2, 0, 5)")
    tables.after("delete from items where id = 2", "insert into items values (2, 0, 5)")
    tables.after(
        "update items set g = 7 where id = 1",
        "update items set id = 100 where id = 1",
        "update items set g = 1 where id = 100",
        "insert into items values (1, 7, 7)",
        "delete from items where id = 100",
    )
    items.change("update items set v = v + 1")
    items.change("delete from items where id = 3")
    items.change("insert into items values (3, 2, 2)")
    items.change("update items set v = v - 1")
    tables.follow()


@pytest.mark.light
def test_every_kind_of_writing_statement_is_followed(items, followed, app, pg_version):
    tables = followed(*QUERIES)
    tables.after(
        "insert into items values (1, 2, 3), (8, 8, 8)"
        " on conflict (id) do update set v = excluded.v, g = excluded.g"
    )
    tables.after("insert into items values (1, 9, 9), (10, 1, 1) on conflict do nothing")
    with app.cursor() as cursor, cursor.copy("copy items from stdin") as copy:
        copy.write_row((11, 1, 1))
        copy.write_row((12, None, None))
    tables.follow()
    tables.after(
        "with gone as (delete from items where id in (11, 2) returning *), more as (insert into items"
        " select id + 100, g, v from gone), raised as (update items set v = v + 1 where id = 4) select 1"
    )
    if pg_version >= 15:
        tables.after(
            "merge into items i using (values (1, 5), (4, 0), (50, 50)) n(id, v) on n.id = i.id"
            " when matched and n.v = 0 then delete when matched then update set v = n.v, g = null"
            " when not matched then insert values (n.id, 1, n.v)"
        )
    tables.after("update items set v = other.v from items other where other.id = items.id + 1")


def test_cascades_reach_the_tables_below(source, followed):
    source("p(id int primary key, name text)", rows=[(1, "one"), (2, "two"), (3, "three")])
    source(
        "c(id int primary key, p int references p on delete cascade on update cascade, v int)",
        rows=[(1, 1, 1), (2, 1, 2), (3, 2, 3), (4, 3, 4)],
    )
    source("d(c int references c on delete set null, w int)", rows=[(1, 1), (2, 2), (2, 3), (4, 4)])
    tables = followed(
        "select p.name, c.id, d.w from p join c on c.p = p.id join d on d.c = c.id",
        "select p.id, count(*) as n, sum(c.v) as s from p join c on c.p = p.id group by p.id",
        "select c, max(w) as top from d group by c",
    )
    tables.after("update p set id = id + 10 where id = 1", "delete from p where id = 3")
    tables.after("delete from p where id = 11", "insert into d values (3, 9)")
    tables.after("delete from p")


@pytest.mark.light
def test_truncate_is_followed(source, followed, app):
    source("p(id int primary key, name text)", rows=[(1, "one"), (2, "two")])
    source("c(p int references p, v int)", rows=[(1, 1), (1, 2), (2, 3)])
    tables = followed(
        "select p.name, c.v from p join c on c.p = p.id",
        "select p, sum(v) as s, min(v) as low from c group by p",
        "select count(*) as n from c",
        "select p, array_agg(v order by v) as vs from c group by p",
    )
    tables.after("truncate c", actions=MAY_BE_FULL)
    tables.stand_still()
    tables.after("insert into c values (1, 5), (2, 6)")
    tables.after(
        "insert into c values (2, 9)", "truncate c", "insert into c values (2, 7)", actions=MAY_BE_FULL
    )
    tables.after("update c set v = v + 1")
    tables.after(
        "truncate p cascade",
        "insert into p values (3, 'three')",
        "insert into c values (3, 3)",
        actions=MAY_BE_FULL,
    )
    tables.after("insert into c values (3, 4)", "delete from c where v = 3")
    with app.transaction(force_rollback=True):
        app.execute("truncate c")
    tables.stand_still()


@pytest.mark.light
def test_partitions_are_followed_as_one_table(source, followed, app):
    source("e(id int, day int, v int) partition by range (day)")
    app.execute("create table e1 partition of e for values from (0) to (10)")
    app.execute("create table e2 partition of e for values from (10) to (20) partition by list (v)")
    app.execute("create table e2a partition of e2 for values in (1, 2, 3)")
    app.execute("create table e2b partition of e2 default")
    app.execute("grant select, trigger on e1, e2, e2a, e2b to trickle")
    app.execute("insert into e select n, n, n % 5 from generate_series(0, 19) n")
    tables = followed(
        "select id, day, v from e",
        "select v, count(*) as n, max(day) as last, sum(id) as s from e group by v",
        "select a.id, b.id as b from e a join e1 b on a.v = b.day",
        "select v, string_agg(id::text, ',' order by id) as ids from e2 group by v",
    )
    tables.after("update e set day = day + 10 where id < 3", "update e set v = v + 1 where id > 15")
    tables.after(
        "insert into e1 values (50, 5, 5)",
        "delete from e2a where id = 12",
        "update e2 set v = 2 where v > 3",
    )
    tables.after("update e set day = 19 - day", "delete from e where id = 50")
    tables.after("truncate e1", actions=MAY_BE_FULL)
    tables.after("insert into e values (1, 1, 1), (2, 11, 2)", "update e set v = 3 where id = 1")
    tables.after("truncate e2a", "insert into e2 values (7, 17, 1)", actions=MAY_BE_FULL)


def test_a_partition_that_comes_or_goes_is_followed(source, followed, app):
    source("e(id int, day int) partition by range (day)")
    app.execute("create table e1 partition of e for values from (0) to (10)")
    app.execute("grant select, trigger on e1 to trickle")
    app.execute("insert into e values (1, 1), (2, 2)")
    tables = followed("select id, day from e", "select count(*) as n, max(id) as top from e")
    tables.after(
        "create table e2 partition of e for values from (10) to (20)",
        "grant select, trigger on e2 to trickle",
        "insert into e values (11, 11)",
        actions=MAY_BE_FULL,
    )
    tables.after("insert into e2 values (12, 12)", "update e set day = 13 where id = 1")
    tables.after("alter table e detach partition e1", "insert into e1 values (5, 5)", actions=MAY_BE_FULL)
    tables.after("insert into e1 values (6, 6)", "delete from e where id = 11")
    tables.after("alter table e attach partition e1 for values from (0) to (10)", actions=MAY_BE_FULL)
    tables.after("delete from e1 where id = 5", "insert into e values (7, 7)")


def test_inheritance_children_count_as_rows_of_their_parent(source, followed, app):
    source("base(id int, v int)", rows=[(1, 1)])
    app.execute("create table child (extra text) inherits (base)")
    app.execute("grant select, trigger on child to trickle")
    tables = followed("select id, v from base", "select v, count(*) as n from base group by v")
    tables.after("insert into child values (2, 1, 'x'), (3, 2, 'y')", "update base set v = 5 where id = 1")
    tables.after("update base set v = v + 1", "delete from child where id = 2")


def test_generated_and_large_values_are_followed(source, followed):
    source("docs(id int primary key, body text, size int generated always as (length(body)) stored)")
    tables = followed(
        "select id, body, size from docs",
        "select size, count(*) as n, max(id) as last from docs group by size",
        "select md5(body) as digest, count(*) as n from docs group by md5(body)",
        "select body, count(*) as n from docs group by body",
    )
    long = "(select string_agg(md5(n::text), '') from generate_series(1, 4000) n)"
    tables.after(f"insert into docs values (1, {long}), (2, 'short'), (3, {long} || '!')")
    tables.after("update docs set id = id + 10", "update docs set body = body || '!' where id = 11")
    tables.after("update docs set body = 'short' where id = 11", "delete from docs where id = 13")
