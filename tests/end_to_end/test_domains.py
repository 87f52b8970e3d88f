"""Columns of NOT NULL and CHECK domains, through every operator that makes nulls of its own."""

from __future__ import annotations

from pgtrickle.model.stream_table import Action

EVERY = frozenset(Action)


def test_domains_that_refuse_nulls_are_followed(source, followed, app):
    app.execute("create domain base as int not null")
    app.execute("create domain amount as base check (value > 0)")
    app.execute("create domain tag as text collate \"C\" not null check (value <> '')")
    app.execute("create domain tags as tag[] not null")
    app.execute("create type pair as (a amount, b tag)")
    app.execute("create domain money2 as numeric(10,2) not null")
    app.execute("create domain day as date not null")
    source("o(id int primary key, c int, a amount, g tag, l tags, p pair, m money2, d day)")
    source("c(id int primary key, g tag, a amount)")
    app.execute("insert into c values (1, 'x', 5), (2, 'y', 6)")
    row = "{}, {}, {}, '{}', '{{t}}', '(3,z)', 1.50, '2024-01-01'"
    app.execute(f"insert into o values ({row.format(1, 1, 1, 'a')}), ({row.format(2, 9, 2, 'b')})")
    tables = followed(
        "select * from o",
        "select o.id, c.g, c.a, o.l, o.p, o.m, o.d from o left join c on c.id = o.c",
        "select c.id, o.a, o.g, o.l, o.p, o.m, o.d from o full join c on c.id = o.c",
        "select g, a, count(*) as n from o group by grouping sets ((g), (a), ())",
        "select id, (select max(c.a) from c where c.id = o.c) as a from o",
        "select id, (select c.g from c where c.id = o.c) as g from o",
        "select g, max(a) as top, min(d) as d, sum(a) as s, sum(m) as m from o group by g",
        "select max(a) as a, min(d) as d, sum(m) as m from o",
        "select g from o union select g from c",
        "select a, g from o union all select a, g from c",
        "select id, a, g from o order by a desc, g limit 2",
        "select o.id, c.a from o left join c on c.id = o.c order by c.a desc nulls first, o.id limit 2",
        "select distinct g, a from o",
        "select id, lag(a) over (order by id) as before from o",
        "select g, array_agg(id order by id) as ids from o group by g",
        "select id, coalesce(c, 0) as c, a + 1 as b, pg_typeof(a) = 'amount'::regtype as t from o",
    )
    tables.after(f"insert into o values ({row.format(3, 2, 3, 'c')})", "delete from o where id = 1")
    tables.after(
        "update o set c = 1, a = a + 1", "delete from c where id = 2", "insert into c values (3, 'z', 1)"
    )
    tables.after("delete from o", actions=EVERY)
    tables.after(f"insert into o values ({row.format(4, 8, 4, 'd')})", actions=EVERY)
    app.execute("truncate o")
    tables.follow(actions=EVERY)
    tables.after(f"insert into o values ({row.format(5, 1, 5, 'e')})")
    tables.read_the_same()


def test_a_stream_table_has_the_domains_of_its_query(source, followed, app):
    app.execute("create domain amount as int not null check (value > 0)")
    source("o(id int primary key, a amount)", rows=[(1, 1)])
    source("c(id int primary key, a amount)")
    full = "select o.id, c.a from o left join c on c.id = o.c_id"
    app.execute("alter table o add column c_id int")
    tables = followed(full)
    recomputed = followed(full, mode="FULL")
    for table in (*tables.tables, *recomputed.tables):
        types = app.execute(
            "select format_type(atttypid, null) from pg_attribute"
            " where attrelid = %s::regclass and attname = 'a'",
            (table.name,),
        ).fetchone()
        assert types == ("amount",)
    app.execute("update o set c_id = 7")
    app.execute("insert into c values (7, 3)")
    for group in (tables, recomputed):
        group.follow(actions=EVERY)
    app.execute("alter domain amount drop constraint amount_check")
    app.execute("update c set a = -1")
    for group in (tables, recomputed):
        group.follow(actions=EVERY)


def test_domains_over_ranges_are_followed(source, followed, app):
    app.execute("create domain span as int4range")
    app.execute("create domain narrow as span check (upper(value) < 100)")
    app.execute("create domain spans as int4multirange")
    source("stays(id int primary key, k int, s span, n narrow, m spans, l span[])")
    app.execute("insert into stays values (1, 1, '[1,5)', '[2,3)', '{[1,2)}', array['[1,5)'::span])")
    app.execute("insert into stays values (2, 1, null)")
    tables = followed(
        "select * from stays",
        "select o.id, c.s, c.n, c.m, c.l from stays o left join stays c on c.id = o.k",
        "select s, count(*) as n from stays group by s",
        "select m, max(id) as last from stays group by m",
        "select k, array_agg(n order by id) as ns from stays group by k",
        "select id, lag(s) over (order by id) as s from stays",
    )
    tables.after(
        "update stays set s = 'empty', m = '{}' where id = 2", "insert into stays values (3, 2, '(,)')"
    )
    tables.after("delete from stays where id = 1")
    tables.read_the_same()
