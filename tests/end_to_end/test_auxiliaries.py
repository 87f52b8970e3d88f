"""Inner results that are kept beside a stream table, and values that comparisons pass as they move."""

from __future__ import annotations

import pytest

from pgtrickle.changes import memory
from pgtrickle.commands.explain import explain
from pgtrickle.model.stream_table import Action


@pytest.fixture
def items(source):
    return source(
        "items(id int primary key, g int, h text, v int, n numeric(10,2), d date)",
        rows=[
            (1, 1, "a", 10, "1.50", "2024-01-01"),
            (2, 1, "b", 20, "2.25", "2024-01-02"),
            (3, 2, "a", 30, None, "2024-01-03"),
            (4, 2, None, None, "4.00", None),
            (5, None, "b", 5, "5.00", "2024-01-01"),
        ],
    )


def test_rows_cross_a_mean_that_moves(items, followed):
    tables = followed(
        "select id, v from items where v > (select avg(v) from items)",
        "select id, n from items where n <= (select avg(n) from items where g = 1)",
        "select id, d from items where (select min(d) from items) < d",
        "select g, sum(v) as s from items group by g having sum(v) > (select sum(v) * 0.4 from items)",
        "select h, count(*) as c from items where v >= (select max(v) * 0.5 from items) group by h",
    )
    tables.after("insert into items values (6, 3, 'c', 1000, 900, '2023-01-01')")
    tables.after("update items set v = 15 where id = 6", "update items set n = 1 where id in (1, 6)")
    tables.after("update items set v = 1000 where id = 6", "update items set v = 15 where id = 6")
    tables.after("delete from items where id in (1, 3)", "insert into items (id, v) values (7, 12), (8, 13)")
    tables.after("update items set v = null, n = null, d = null")
    tables.after("update items set v = id, n = id, d = '2024-01-01'::date + id")
    tables.after("delete from items")
    tables.after("insert into items (id, g, v, n) values (1, 1, 1, 1)")
    tables.read_the_same()


def test_groups_are_joined_by_their_values(items, followed):
    tables = followed(
        "select i.id, m.g, m.most from items i join (select g, max(v) as most from items group by g) m"
        " on i.v = m.most",
        "select i.id, m.g, m.s from items i"
        " join (select g, sum(v) + 1 as s, count(*) as c from items group by g) m"
        " on m.s = i.v + 1 and m.c = i.g",
        "select a.g, b.h from (select g, count(*) as c from items group by g) a"
        " join (select h, count(v) as c from items group by h) b on b.c = a.c",
        "select i.id, m.most from items i left join (select g, max(v) as most from items group by g) m"
        " on i.v = m.most",
    )
    tables.after("insert into items values (6, 1, 'c', 20, 900, '2023-01-01'), (7, 2, 'c', 30, 1, null)")
    tables.after("update items set v = 30 where id in (2, 6)", "update items set g = 1 where id = 3")
    tables.after("delete from items where v = 30", "insert into items (id, g, v) values (8, 1, 2), (9, 2, 2)")
    tables.after("update items set v = null")
    tables.after("update items set v = 1", "update items set g = id where id > 4")
    tables.after("delete from items")
    tables.after("insert into items (id, g, v) values (1, 1, 1)")


def test_what_postgresql_evaluates_above_keeps_its_columns(items, followed):
    tables = followed(
        "select sum(i.n) as s, sum(distinct i.id) as d"
        " from (select max(2) as c from items) m join items i on true",
        "select g, sum(v) as s, string_agg(h, ',' order by id) as all from items"
        " where v > (select avg(v) from items) group by g",
    )
    tables.after("update items set v = 100, n = 3 where id = 1", "delete from items where id = 2")
    tables.after("delete from items")


def test_the_greatest_of_groups_ties_goes_and_comes_back(items, followed):
    tables = followed(
        "with t as (select g, sum(v) as s from items group by g)"
        " select i.id, t.s from items i join t on t.g = i.g where t.s = (select max(s) from t)",
        "select max(s) as most, min(s) as least from (select g, sum(v) as s from items group by g) q",
        "select id from items where v in (select max(v) from items group by g)",
    )
    tables.after("insert into items (id, g, v) values (6, 3, 30)")
    tables.after("update items set v = 1 where id = 3", "update items set v = 29 where id = 6")
    tables.after("delete from items where g = 1", "insert into items (id, g, v) values (1, 1, 30)")
    tables.after("update items set g = null")
    tables.after("update items set g = id % 2, v = 7")
    tables.after("delete from items")
    tables.stand_still()


def test_rows_are_found_among_those_of_joined_tables(source, items, followed):
    source("parts(g int, name text, want int)", rows=[(1, "x", 1), (2, "y", 3), (2, "z", None)])
    tables = followed(
        "select id from items where g in"
        " (select p.g from parts p join items i on i.g = p.g and i.v > p.want)",
        "select id from items o where not exists (select from parts p join items i on i.id = p.want"
        " where p.g = o.g)",
        "select count(*) as n from items where g in (select p.g from parts p where exists"
        " (select from items i where i.h = p.name or i.g = p.g))",
    )
    tables.after("update parts set want = 100", "update items set v = 50 where id = 1")
    tables.after("delete from parts where name = 'x'", "insert into parts values (null, 'n', 2), (1, 'q', 2)")
    tables.after("update items set g = 2 where id = 2", "delete from items where id = 3")
    tables.after("delete from parts")
    tables.after("insert into parts values (1, 'x', 1)", "update items set g = 1, v = 3")


def test_floats_texts_and_numbers_without_scale_are_compared_as_postgresql_does(source, followed):
    source(
        'odd(id int primary key, f float8, n numeric, t text, c text collate "C", i int)',
        rows=[
            (1, 0.1, "1.0", "a", "a", 1),
            (2, "NaN", "1.00", "B", "B", 2),
            (3, "-Infinity", "7", "ä", "Z", 3),
        ],
    )
    tables = followed(
        "select id, f from odd where f > (select min(f) from odd)",
        "select id, n from odd where n >= (select max(n) from odd where id < 3)",
        "select id, t from odd where t > (select min(t) from odd)",
        "select id, c from odd where c < (select max(c) from odd)",
        "select id from odd where i > (select avg(n) from odd)",
        "select id from odd where i >= (select count(distinct n) from odd)",
    )
    tables.after("update odd set f = 'NaN', n = 1.000, t = 'A', c = 'zz' where id = 1")
    tables.after("insert into odd values (4, 'Infinity', 3.14159265358979, 'Ä', '', 0)")
    tables.after("delete from odd where id = 3", "update odd set f = -f, n = -n, i = 5 where id in (2, 4)")
    tables.after("update odd set f = null, n = null, t = null, c = null")


KEPT = """
select count(*) from pg_class
where relnamespace = 'pgtrickle_state'::regnamespace and relname ~ '^auxiliary_[0-9_]+$'
"""


def kept_tables(app):
    return app.execute(KEPT).fetchone()[0]


def test_inner_results_can_be_demanded_and_forbidden_and_go_with_their_table(items, stream_table, app):
    table = stream_table(
        "select id from items where v > (select avg(v) from items)", name="above", mode="DIFFERENTIAL"
    )
    assert kept_tables(app) == 1
    text = explain(table.engine, "above").text
    assert "inner results kept beside it" in text
    assert "about 1 rows" in text
    with app.transaction():
        app.execute("select pgtrickle.alter_stream_table('above', auxiliary_results => 'never')")
    app.execute("update items set v = v + 1 where id = 1")
    table.refresh()
    table.equals_its_query()
    assert kept_tables(app) == 0
    with app.transaction():
        app.execute("select pgtrickle.alter_stream_table('above', auxiliary_results => 'always')")
    table.refresh()
    app.execute("update items set v = 1000 where id = 1")
    assert table.refresh().action is Action.DIFFERENTIAL
    table.equals_its_query()
    assert kept_tables(app) == 1
    with app.transaction():
        app.execute("select pgtrickle.drop_stream_table('above')")
    assert kept_tables(app) == 0


def test_an_inner_result_that_was_removed_is_made_again(items, stream_table, app, admin):
    table = stream_table("select id from items where v > (select avg(v) from items)", mode="DIFFERENTIAL")
    admin.execute(
        "do $$ declare t regclass; begin for t in select oid from pg_class where relname ~ '^auxiliary_'"
        " and relkind = 'r' loop execute 'drop table ' || t; end loop; end $$"
    )
    app.execute("update items set v = 100 where id = 1")
    table.refresh()
    table.equals_its_query()
    app.execute("update items set v = 1 where id = 1")
    assert table.refresh().action is Action.DIFFERENTIAL
    table.equals_its_query()


def test_truncated_and_altered_sources_leave_inner_results_right(items, stream_table, app):
    table = stream_table("select id from items where v > (select avg(v) from items)", mode="DIFFERENTIAL")
    app.execute("truncate items")
    table.refresh()
    table.equals_its_query()
    app.execute("insert into items (id, v) values (1, 1), (2, 5)")
    table.refresh()
    table.equals_its_query()
    app.execute("alter table items alter column v type bigint")
    app.execute("update items set v = 10000000000 where id = 1")
    table.refresh()
    table.equals_its_query()
    app.execute("update items set v = v - 1")
    assert table.refresh().action is Action.DIFFERENTIAL
    table.equals_its_query()


def test_what_is_too_large_for_the_driver_is_spread_over_tasks(items, stream_table, engine, app, monkeypatch):
    app.execute("insert into items select n, n % 7, null, n, n, null from generate_series(10, 2000) n")
    query = "select g, sum(v) as s from items group by g having sum(v) > (select avg(v) * 10 from items)"
    monkeypatch.setattr(memory, "FREE", 0)
    engine.memory_limit = 12_000
    table = stream_table(query, mode="DIFFERENTIAL")
    app.execute("update items set v = v + 1, g = g + 1 where id % 2 = 0")
    outcome = table.refresh()
    assert outcome.action is Action.DIFFERENTIAL
    table.equals_its_query()
    app.execute("update items set v = 3 where id = 1")
    table.refresh()
    table.equals_its_query()


def test_a_stream_table_over_one_that_keeps_inner_results_goes_together_with_it(items, stream_table, app):
    above = stream_table("select id, v from items where v > (select avg(v) from items)", name="above")
    over = stream_table("select count(*) as n, max(v) as top from above where v < (select max(v) from above)")
    for statement in ("update items set v = 500 where id = 2", "delete from items where id = 2"):
        app.execute(statement)
        above.refresh()
        over.refresh()
        above.equals_its_query()
        over.equals_its_query()
