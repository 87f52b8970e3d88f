"""Values of every type and names of every kind travel through Spark and back unharmed."""

from __future__ import annotations

import psycopg
import pytest

from pgtrickle.model.settings import SparkPath
from pgtrickle.model.stream_table import Action


@pytest.mark.light
def test_values_of_every_type_are_followed(source, followed, app):
    app.execute("create type mood as enum ('sad', 'ok', 'happy')")
    app.execute("create domain positive as int check (value > 0)")
    app.execute("create domain tag as varchar(5)")
    app.execute("create type pair as (a int, b text)")
    source(
        "t(id int primary key, m mood, l int[], j jsonb, y bytea, p positive, g tag, u uuid, r int4range,"
        " i inet, c char(5), tt time, ts timestamp, tz timestamptz, d date, iv interval, w pair, b bit(3),"
        " mo money)"
    )
    one = (
        "'happy', '{1,NULL,3}', '{\"a\": [1, 2.50]}', '\\x00ff', 1, 'x',"
        " '00000000-0000-0000-0000-00000000000a', '[1,5)', '10.0.0.1/8', 'ab', '12:00:00.000001',"
        " '2024-01-01 00:00:00.000001', '2024-01-01 00:00+02',"
        " '0044-03-15 BC', '1 mon -1 day 00:00:01', '(1,\"x y\")', '101', '12.50'"
    )
    two = (
        "'sad', '{}', '{\"a\": [1, 2.5]}', '', 2, '', '00000000-0000-0000-0000-00000000000b',"
        " 'empty', '::1', '',"
        " '24:00', '-infinity', 'infinity', 'infinity', '30 days', '(,)', '000', '-0.01'"
    )
    tables = followed(
        "select * from t",
        "select a.id, b.j, b.l, b.y, b.iv, b.w, b.mo from t a join t b on a.m = b.m and a.c = b.c",
        "select m, count(*) as n, max(tz) as z, min(ts) as s, max(d) as d, max(p) as p from t group by m",
        "select c, count(*) as n from t group by c",
        "select u, i, tt, d, ts, tz, g, y from t group by u, i, tt, d, ts, tz, g, y",
        "select distinct m, c, y, u, g from t",
        "select l, count(*) as n, array_agg(id order by id) as ids from t group by l",
        "select j -> 'a' as a, count(distinct iv) as n, max(m) as m, min(c) as c from t group by j -> 'a'",
        "select iv, r, b, count(*) as n from t group by iv, r, b",
        "select j, w, mo, count(*) as n from t group by j, w, mo",
        "select * from t order by m, l nulls first, id limit 2",
        "select array[m] as m, l, array_agg(id order by id) as ids from t group by m, l"
        " order by l, m limit 2",
    )
    tables.after(f"insert into t values (1, {one}), (2, {two}), (3, {one})", "insert into t (id) values (4)")
    tables.after("update t set j = '{\"a\": [1.0, 2.500]}', c = 'ab ', iv = '24 hours' where id = 1")
    tables.after(
        "update t set iv = '1 day', m = 'ok', l = '{1,NULL,3}' where id in (1, 4)",
        "delete from t where id = 2",
    )
    tables.after(
        "update t set (m, l, y) = (select m, l, y from t where id = 3)", f"insert into t values (5, {two})"
    )
    tables.after("delete from t where id < 4", "update t set id = id + 1 where id = 5")
    tables.after("delete from t")


def test_text_that_looks_like_something_else_is_kept(source, followed):
    nasty = [
        "",
        " ",
        "null",
        "NULL",
        "\\N",
        "a,b",
        'q"q',
        "it's",
        "back\\slash",
        "new\nline",
        "tab\t",
        "é",
        "e\u0301",
        "🙂",
        "{}",
        "%s",
    ]
    source("t(id int primary key, s text, c char(8))")
    tables = followed(
        "select id, s, c from t",
        "select s, count(*) as n, min(id) as first from t group by s",
        "select a.id, b.id as b from t a join t b on a.s = b.s",
        "select s, array_agg(id order by id) as ids from t group by s",
        "select c, count(*) as n from t group by c",
    )
    with tables.app.transaction(), tables.app.cursor() as cursor:
        cursor.executemany(
            "insert into t values (%s, %s, %s)", [(n, s, s[:8]) for n, s in enumerate([*nasty, *nasty])]
        )
    tables.follow()
    tables.after("delete from t where id % 3 = 0", "update t set s = s || ' ' where id % 5 = 0")
    tables.after("update t set c = s where length(s) < 8", "update t set s = '' where id % 2 = 0")


def test_case_insensitive_text_is_equal_as_postgres_says(source, followed, admin):
    try:
        admin.execute("create extension citext")
    except psycopg.errors.FeatureNotSupported:
        pytest.skip("citext is not installed here")
    source("t(id int primary key, s citext)", rows=[(1, "A"), (2, "a"), (3, "b")])
    tables = followed("select id, s from t", "select s, count(*) as n from t group by s")
    tables.after("insert into t values (4, 'B'), (5, null)", "update t set s = 'A' where id = 3")
    tables.after("delete from t where id in (1, 2)")


def test_a_collation_that_ignores_case_is_respected(source, followed, app):
    try:
        app.execute(
            "create collation blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
        )
    except psycopg.errors.FeatureNotSupported:
        pytest.skip("ICU is not built in here")
    source("t(id int primary key, s text collate blind)", rows=[(1, "A"), (2, "a"), (3, "b")])
    tables = followed(
        "select id, s from t",
        "select s, count(*) as n from t group by s",
        "select a.id, b.id as b from t a join t b on a.s = b.s",
        "select distinct s from t",
        mode="AUTO",
    )
    tables.after("insert into t values (4, 'B'), (5, null)", actions=frozenset(Action))
    tables.after("update t set s = 'A' where id = 3", actions=frozenset(Action))
    tables.after("delete from t where id in (1, 2)", actions=frozenset(Action))


def test_sixty_columns_are_followed(source, followed):
    columns = [f"c{n}" for n in range(1, 61)]
    kinds = ("int", "text", "numeric(10,2)", "bool", "timestamptz")
    declared = ", ".join(f"{c} {kinds[n % 5]}" for n, c in enumerate(columns))
    source(f"wide(id int primary key, {declared})")
    counted = ", ".join(f"count({c}) as {c}n, max({c}::text) as {c}m" for c in columns[1:30])
    tables = followed(
        "select * from wide",
        f"select c1, {counted} from wide group by c1",
        "select a.*, b.c60 as other from wide a join wide b on a.c1 = b.c6",
    )
    tables.after(
        "insert into wide (id, c1, c6, c60) values (1, 1, 1, now()), (2, 2, 1, null), (3, null, null, null)"
    )
    tables.after("update wide set c59 = true, c58 = 1.5, c6 = 2", "delete from wide where id = 3")


NAMES = '"Mixed Case", weight, xid, count, t, "quote""d", "select", "día", "a.b", "`tick`", "%s", "{x}"'


def test_columns_may_be_called_anything(source, followed):
    names = NAMES.split(", ")
    declared = ", ".join(f"{name} int" for name in names)
    source(f'"Weird ""Table"(id int primary key, {declared})', rows=[(1, *[1] * 12), (2, *[2] * 12)])
    source('"from"("user" int, "order" int)', rows=[(1, 5), (1, 6), (2, 7)])
    w, shown = '"Weird ""Table"', ", ".join(f"w.{name}" for name in names)
    tables = followed(
        f"select * from {w}",
        f'select {shown}, f."order" as "group" from {w} w join "from" f on f."user" = w."Mixed Case"',
        f'select weight, count(*) as count, sum(xid) as xid, max("quote""d") as "quote""d", min("%s") as "%s"'
        f" from {w} group by weight",
        f'select "select", "`tick`", array_agg(t order by id) as t from {w} group by "select", "`tick`"',
        f'select distinct weight as "weight", t as k0, xid as s0, count as f0 from {w}',
        f"select t.t, t.count, c.weight from {w} t join {w} c on t.count = c.t",
        f'select weight from {w} union all select "order" from "from"',
    )
    tables.after(f'update {w} set weight = 5, t = 2, count = 2, "quote""d" = 0, "{{x}}" = null where id = 1')
    tables.after(
        f"insert into {w} select id + 10, {NAMES} from {w}",
        'delete from "from" where "order" = 5',
    )
    tables.after(f"delete from {w} where weight = 5", 'update "from" set "user" = 2')


def test_rows_are_counted_without_capturing_a_column_of_them(source, followed):
    source("t(a text, b int)", rows=[("x", 1), ("y", 2), ("y", 2)])
    source("u(c int)", rows=[(1,), (2,)])
    tables = followed(
        "select count(*) as n from t",
        "select 1 as one from t",
        "select count(*) as n from t having count(*) > 2",
        "select u.c, count(*) as n from u cross join t group by u.c",
        "select 'x' as x, count(*) as n from t one, t two",
    )
    tables.after("insert into t values ('z', 3), (null, null)", "delete from t where a = 'x'")
    tables.after("delete from t where a = 'y'", "delete from u where c = 1")
    tables.after("delete from t")
    tables.after("insert into t values (null, null)", "insert into u values (null)")


@pytest.mark.on_postgres(18)
def test_virtual_columns_are_recomputed_where_their_author_prints_values_differently(
    source, stream_table, app
):
    readings = source(
        "readings(id int primary key, f float8, told text generated always as (f::text) virtual)"
    )
    readings.change("insert into readings values (1, 1 / 3.0::float8)")
    app.execute("set extra_float_digits = 0")
    told = stream_table("select id, told from readings")
    readings.change("insert into readings values (2, 2 / 3.0::float8)", "delete from readings where id = 1")
    outcome = told.refresh()
    assert outcome.action is Action.FULL
    assert "virtual column told" in outcome.reason
    assert told.rows() == [(2, "0.666666666666667")]


def test_arrays_of_fixed_lengths_keep_all_of_each_element(source, followed):
    codes = source("codes(id int primary key, k int, c char(3), b bit(4), cs char(3)[], bs bit(4)[])")
    codes.change(
        "insert into codes values (1, 1, 'abc', '1011', '{abc,d}', '{1011,0001}')",
        "insert into codes values (2, 1, 'd', '0001', '{}', '{}')",
    )
    tables = followed(
        "select * from codes",
        "select o.id, c.cs, c.bs from codes o left join codes c on c.id = o.k",
        "select k, array_agg(c order by id) as cs, array_agg(b order by id) as bs from codes group by k",
        "select cs, bs, count(*) as n from codes group by cs, bs",
        "select id, lag(cs) over (order by id) as cs, lag(bs) over (order by id) as bs from codes",
    )
    tables.read_the_same()
    tables.after(
        "update codes set c = 'xyz', cs = '{xyz,NULL}', bs = '{1111}' where id = 2",
        "insert into codes values (3, 2, 'ef', '0110', '[5:6]={efg,h}', '{{1000,0100}}')",
    )
    tables.read_the_same()
    tables.after("delete from codes where id = 1", "update codes set k = 3")
    tables.read_the_same()


def test_texts_of_no_fixed_length_keep_their_trailing_spaces(source, followed):
    names = source("names(id int primary key, k int, n bpchar, c char(4))")
    names.change("insert into names values (1, 1, 'a ', 'a'), (2, 1, 'b', 'bc'), (3, 2, '', '')")
    tables = followed(
        "select * from names",
        "select o.id, o.n, c.c from names o join names c on c.id = o.k",
        "select k, max(c) as most, min(c) as least, array_agg(c order by id) as cs from names group by k",
    )
    tables.read_the_same()
    tables.after(
        "update names set n = 'b  ', c = 'x' where id = 2", "insert into names values (4, 2, 'd  ', 'd')"
    )
    tables.read_the_same()


@pytest.mark.parametrize(
    ("declared", "first", "second"),
    [
        ("pg_snapshot", "'1:1:'", "'10:20:10,14'"),
        ("json[]", "array['{}'::json]", "array['[]'::json]"),
        ("place", "row(1, '(0,1)')::place", "row(2, '(1,2)')::place"),
        ("places", "array[row(1, '(0,1)')::place]", "null"),
    ],
)
def test_values_without_equality_are_recomputed_below_what_postgresql_evaluates(
    source, stream_table, app, declared, first, second
):
    app.execute("create type place as (id int, spot point)")
    app.execute("create domain places as place[]")
    held = source(f"held(id int primary key, v {declared})")
    held.change(f"insert into held values (1, {first}), (2, {second})")
    before = stream_table("select id, lag(v) over (order by id) as v from held", loads=False)
    before.refresh()
    held.change(f"update held set v = {second} where id = 1", f"insert into held values (3, {first})")
    outcome = before.refresh()
    assert outcome.action is Action.FULL
    assert "has no equality" in outcome.reason
    told = "select id, v::text from {} order by id"
    assert (
        app.execute(told.format(before.name)).fetchall()
        == app.execute(told.format(f"({before.query}) q")).fetchall()
    )


def test_groups_of_values_that_cannot_be_sorted_are_followed(source, followed):
    source("runs(id int primary key, x xid, a aclitem)", rows=[(1, "7", "=r/app"), (2, "7", "=r/app")])
    tables = followed(
        "select x, count(*) as n from runs group by x",
        "select a, max(id) as last from runs group by a",
        "select distinct x from runs",
        "select * from runs",
    )
    tables.after("insert into runs values (3, '8', '=w/app')", "update runs set x = '9' where id = 1")
    tables.after("delete from runs where id = 2")


@pytest.mark.parametrize("path", [SparkPath.SMALL, SparkPath.DISTRIBUTED])
def test_values_whose_arrays_have_another_delimiter_are_followed(source, stream_table, app, engine, path):
    """The elements of an array of boxes are separated by semicolons."""
    engine.path = path
    areas = source("areas(id int primary key, k int, b box, bs box[])")
    areas.change(
        "insert into areas values (1, 1, '(1,1),(0,0)', '{(1,1),(0,0);(2,2),(1,1)}')",
        "insert into areas values (2, 1, null, '{}')",
    )
    tables = [
        stream_table(query, mode="DIFFERENTIAL", loads=False)
        for query in (
            "select id, k, b, bs from areas",
            "select o.id, o.k, c.b, c.bs from areas o left join areas c on c.id = o.k",
        )
    ]
    for change in (
        "select",
        "update areas set b = '(3,3),(0.5,0)' where id = 2",
        "insert into areas values (3, 2, null, '{(5,5),(4,4)}')",
        "delete from areas where id = 1",
    ):
        areas.change(change)
        for table in tables:
            table.refresh()
            told = "select id, k, b::text, bs::text from {} order by id"
            stored = app.execute(told.format(table.name)).fetchall()
            assert stored == app.execute(told.format(f"({table.query}) q")).fetchall()


def test_a_column_without_equality_that_nobody_reads_keeps_nothing_from_being_followed(source, followed):
    notes = source("notes(id int primary key, during int4range, note json, notes json[])")
    notes.change("insert into notes values (1, '[1,5)', '{}', array['{}'::json]), (2, '[1,5)', '[]', null)")
    tables = followed(
        "select a.id, b.id as other from notes a join notes b on b.during = a.during",
        "select id, lag(during) over (order by id) as before from notes",
    )
    tables.after(
        "update notes set during = '[2,6)' where id = 1",
        "insert into notes values (3, '[2,6)', null, null)",
    )
