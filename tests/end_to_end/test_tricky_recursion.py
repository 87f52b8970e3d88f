"""WITH RECURSIVE under conflicting changes: cycles, paths that are cut, nulls, duplicates, layers."""

from __future__ import annotations

import pytest
from psycopg import sql

from pgtrickle.commands.verify import verify
from pgtrickle.model.errors import RefreshFailed
from pgtrickle.model.stream_table import Action

REACHED = (
    "with recursive r(a, b) as (select a, b from edge union select r.a, e.b from r join edge e on e.a = r.b)"
)
PATHS = (
    "with recursive r(a, b, n) as (select a, b, 1 from edge"
    " union all select r.a, e.b, r.n + 1 from r join edge e on e.a = r.b where r.n < 4)"
)


@pytest.fixture
def edges(source):
    rows = [(1, 2, "x"), (2, 3, "x"), (3, 1, "y"), (3, 4, "y"), (3, 4, "y"), (None, 1, "z"), (4, None, None)]
    source("edge(a int, b int, note text)", rows=rows)
    source("place(id int primary key, name text)", rows=[(1, "one"), (2, "two"), (3, "three"), (4, None)])


def play(tables):
    tables.after("insert into edge values (4, 5, 'n'), (5, 6, 'n')", "delete from edge where a = 1")
    tables.after("update edge set b = 2 where a = 3 and b = 1", "insert into edge values (1, 2, 'x')")
    tables.after("insert into edge values (1, 2, 'x'), (2, 4, null)", "delete from edge where note = 'z'")
    tables.after("update place set name = 'first' where id = 1", "delete from place where id = 3")
    tables.after("update edge set note = 'other'")
    tables.after("insert into place values (5, 'five')", "update edge set a = a + 1 where a < 3")
    tables.after("delete from edge where a = 2 and b = 3", "insert into edge values (null, null, 'q')")
    tables.after("delete from edge")
    tables.after("insert into edge select g, g + 1, 'g' from generate_series(1, 4) g", "delete from place")
    tables.stand_still()


@pytest.mark.light
def test_what_can_be_reached_follows_the_edges_around_cycles(edges, followed):
    play(
        followed(
            f"{REACHED} select a, b from r",
            f"{REACHED} select b from r where a = 1",
            f"{PATHS} select a, b, n from r",
            "with recursive r(a, b) as (select a, b from edge where a < 3 union all select e.a, e.b from r"
            " join edge e on e.a = r.b) cycle a set is_cycle using path select a, b, is_cycle from r",
            f"{PATHS} select a, b, min(n) as shortest, count(*) as paths from r group by a, b",
        )
    )


def test_a_recursion_is_joined_filtered_and_grouped_like_any_other_relation(edges, followed):
    play(
        followed(
            f"{REACHED} select p.name, r.b from place p join r on r.a = p.id",
            f"{REACHED} select p.id, r.b from place p left join r on r.a = p.id and r.b > 2",
            f"{REACHED} select name, count(r.b) as n from place p left join r on r.a = p.id group by name",
            f"{REACHED} select id from place where not exists (select from r where r.b = place.id)",
            f"{REACHED} select id, (select count(*) from r where r.a = place.id) as n from place",
            f"{REACHED} select a, array_agg(b order by b) as reached from r group by a",
            f"{REACHED} select count(*) as n, max(b) as top from r",
        )
    )


def test_windows_first_rows_and_set_operations_stand_above_a_recursion(edges, followed):
    play(
        followed(
            f"{REACHED} select a, b, rank() over (partition by a order by b) as place from r",
            f"{REACHED} select a, b from r order by a, b limit 4",
            f"{REACHED} select b from r except select id from place",
            f"{REACHED} select distinct a from r",
            f"{PATHS} select distinct on (a) a, b, n from r order by a, n desc, b",
        )
    )


def test_a_recursion_that_is_named_twice_or_is_one_of_several(edges, followed):
    numbers = "n(i) as (select 1 union all select i + 1 from n where i < 3)"
    play(
        followed(
            f"{REACHED} select x.a, y.b from r x join r y on x.b = y.a",
            f"{REACHED}, {numbers} select r.a, n.i from r join n on n.i = r.b",
            f"{REACHED}, far(id) as (select id from place union select r.b from far join r on r.a = far.id)"
            " select id from far",
            "select p.id, s.n from place p join (with recursive r(a, b) as (select a, b from edge union"
            " select r.a, e.b from r join edge e on e.a = r.b) select a, count(*) as n from r group by a) s"
            " on s.a = p.id",
        )
    )


def test_an_org_chart_moves_its_people_with_their_depth_and_path(source, followed):
    people = [(1, None, "ada"), (2, 1, "bo"), (3, 1, "cy"), (4, 2, "di"), (5, 4, "ed"), (9, 8, "lost")]
    source("staff(id int primary key, boss int, name text)", rows=people)
    chart = (
        "with recursive chart(id, depth, path, names) as ("
        "select id, 0, array[id], name from staff where boss is null union all "
        "select s.id, c.depth + 1, c.path || s.id, c.names || '/' || s.name from staff s"
        " join chart c on c.id = s.boss where not s.id = any (c.path))"
    )
    tables = followed(
        f"{chart} select id, depth, path, names from chart",
        f"{chart} select depth, count(*) as n from chart group by depth",
        f"{chart} select s.id, c.depth from staff s left join chart c on c.id = s.id",
    )
    tables.after("update staff set boss = 3 where id = 4")
    tables.after("insert into staff values (8, 5, 'new')", "update staff set name = 'bob' where id = 2")
    tables.after("update staff set boss = 4 where id = 3")
    tables.after("update staff set boss = 1 where id = 3", "delete from staff where id = 5")
    tables.after("update staff set boss = null where id = 2", "update staff set id = 50 where id = 1")
    tables.after("update staff set boss = 50 where boss = 1 or id = 8")
    tables.read_the_same()
    tables.after("delete from staff where boss is null")
    tables.stand_still()


def test_a_cut_path_stays_reached_where_another_path_remains(source, followed):
    source("edge(a int, b int)", rows=[(1, 2), (2, 4), (1, 3), (3, 4), (4, 5)])
    tables = followed(f"{REACHED} select a, b from r", f"{PATHS} select a, b, n from r")
    tables.after("delete from edge where a = 2")
    tables.after("delete from edge where a = 3")
    tables.after("insert into edge values (2, 4)", "delete from edge where a = 4")
    tables.after("insert into edge values (4, 1)")
    tables.after("delete from edge where a = 1 and b = 2", "insert into edge values (1, 2)")
    tables.after("delete from edge where a = 4 and b = 1")
    tables.stand_still()


def test_only_the_other_table_changes_and_the_recursion_is_asked_by_key(edges, followed):
    tables = followed(f"{REACHED} select p.name, r.b from place p join r on r.a = p.id")
    tables.after("update place set name = name || '!' where id < 3")
    tables.after("delete from place where id = 2", "insert into place values (7, 'seven')")
    tables.after("update place set id = id + 1 where id = 1")
    tables.stand_still()


def test_numbers_that_a_table_bounds_are_made_and_taken(source, followed):
    source(
        "bound(id int primary key, first int, last int)", rows=[(1, 1, 4), (2, 7, 7), (3, 5, 2), (4, None, 3)]
    )
    numbers = (
        "with recursive n(id, i) as (select id, first from bound union all"
        " select n.id, n.i + 1 from n join bound b on b.id = n.id and n.i < b.last)"
    )
    tables = followed(
        f"{numbers} select id, i from n", f"{numbers} select id, sum(i) as total from n group by id"
    )
    tables.after("update bound set last = last + 2 where id = 1", "delete from bound where id = 2")
    tables.after("update bound set first = 3 where id in (3, 4)", "insert into bound values (2, 0, 1)")
    tables.after("update bound set last = null")
    tables.stand_still()


def test_a_recursion_reads_views_and_stream_tables(source, app, stream_table, followed):
    source("edge(a int, b int, is_open boolean)", rows=[(1, 2, True), (2, 3, False), (3, 4, True)])
    app.execute("create view way as select a, b from edge where is_open")
    app.execute("grant select on way to trickle")
    roads = stream_table("select a, b, count(*) as n from edge group by a, b", name="roads")
    tables = followed(
        "with recursive r(a, b) as (select a, b from way union"
        " select r.a, w.b from r join way w on w.a = r.b) select a, b from r",
    )
    above = followed(
        "with recursive r(a, b) as (select a, b from roads union"
        " select r.a, w.b from r join roads w on w.a = r.b) select a, b from r"
    )
    for statement in (
        "update edge set is_open = not is_open",
        "insert into edge values (4, 1, true), (4, 1, true)",
        "delete from edge where a = 2",
        "update edge set a = b, b = a",
    ):
        tables.after(statement)
        roads.refresh()
        above.follow()


def test_a_recursion_without_an_end_fails_by_the_timeout_and_is_followed_once_it_ends(
    source, admin, followed
):
    limited = sql.SQL("alter role trickle in database {} set statement_timeout = '5s'")
    admin.execute(limited.format(sql.Identifier(admin.info.dbname)))
    # it is for sessions that begin afterwards, and a pooler may have some already
    admin.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where usename = 'trickle' and datname = current_database()"
    )
    source("edge(a int, b int)", rows=[(1, 2), (2, 3)])
    tables = followed(f"{REACHED.replace('union', 'union all')} select a, b from r")
    with tables.app.transaction():
        tables.app.execute("insert into edge values (3, 1)")
    with pytest.raises(RefreshFailed, match=r"statement timeout.*a recursion with UNION ALL over a cycle"):
        tables.tables[0].refresh()
    tables.after("delete from edge where a = 3", "insert into edge values (3, 4)")
    tables.stand_still()


def test_subqueries_and_outer_joins_in_the_recursive_term(edges, followed):
    play(
        followed(
            "with recursive r(a, b) as (select a, b from edge union select r.a, e.b from r join edge e on"
            " e.a = r.b where e.b in (select id from place)) select a, b from r",
            "with recursive r(a, n) as (select id, 0 from place union all select e.b, r.n + 1 from r"
            " left join edge e on e.a = r.a where r.n < 3) select a, n from r",
            "with recursive r(a, n) as (select id, 0::bigint from place union all select e.b, r.n + 1 +"
            " (select count(*) from place p where p.id = e.b) from r join edge e on e.a = r.a where r.n < 4)"
            " select a, n from r",
        )
    )


def test_values_that_are_equal_and_not_the_same_are_followed(source, followed):
    source(
        "edge(a numeric, b numeric, s text)", rows=[("1.0", "2", "a"), ("2.00", "3", "b"), ("3", "1", "c")]
    )
    tables = followed(
        f"{REACHED} select a, b from r",
        "with recursive r(b, path) as (select b, a::text from edge where s = 'a' union all"
        " select e.b, r.path || '>' || e.a::text from r join edge e on e.a = r.b where length(r.path) < 9)"
        " select b, path from r",
    )
    tables.after("update edge set a = 2.0 where s = 'b'")
    tables.after("update edge set b = 2.0 where s = 'a'", "insert into edge values (3.00, 1.0, 'd')")
    tables.after("delete from edge where s = 'c'")
    tables.stand_still()


def test_a_recursion_that_only_its_limit_ends_is_evaluated_with_its_limit_alone(
    source, app, stream_table, engine
):
    source("t(a int)", rows=[(1,), (2,), (3,)])
    itself = "with recursive r as (select * from t union all (with x as (select * from r) select * from x))"
    sums = (
        "with recursive r(a, n) as (select a, 0::numeric from t"
        " union all select r.a, r.n + t.a from r join t on true)"
    )
    tables = [
        stream_table(f"{itself} select * from r limit 24"),
        stream_table(f"{sums} select min(n) as n from (select n from r limit 5) s"),
        stream_table(f"{sums} select a, (select n from r where r.a = t.a limit 1) as n from t"),
        stream_table(f"{sums} select exists (select from r where n > 3) as is_there, count(*) as n from t"),
    ]
    app.execute("insert into t values (4)")
    for table in tables:
        outcome = table.refresh()
        assert outcome.action is Action.FULL
        assert "end" in outcome.reason
        table.equals_its_query()
        verify(engine, table.name)
