"""Groups that vanish and revive, lose their extremum, cross HAVING, and have NULL for a name."""

from __future__ import annotations

import pytest

VALUES = "t(id int primary key, g text, h int, v int, n numeric(10,2), f float8, ok bool)"


@pytest.fixture
def values(source):
    return source(
        VALUES,
        rows=[
            (1, "a", 1, 10, "1.50", 0.1, True),
            (2, "a", 1, 10, "2.25", 0.2, False),
            (3, "a", 2, 30, None, 0.3, None),
            (4, None, 1, None, None, None, None),
            (5, None, None, 5, "5.00", 1e100, True),
            (6, "b", 2, 7, "7.00", "NaN", False),
        ],
    )


def test_null_group_keys_go_and_come_back(values, followed):
    tables = followed(
        "select g, count(*) as n, count(v) as c, sum(v) as s from t group by g",
        "select g, h, max(v) as top from t group by g, h",
        "select distinct g, h from t",
        "select count(*) as n from t group by g",
        "select g, string_agg(id::text, '' order by id) as ids from t group by g",
        "select g from t union select h::text from t",
    )
    tables.after("delete from t where g is null")
    tables.after("insert into t (id, g, v) values (7, null, 1), (8, null, null)")
    tables.after("update t set g = null where g = 'b'", "update t set g = 'b' where id in (7, 8)")
    tables.after("update t set g = null, h = null")
    tables.after("delete from t")
    tables.after("insert into t (id) values (1)")
    tables.stand_still()


def test_sums_of_nulls_are_null_and_counts_of_nothing_are_zero(values, followed):
    tables = followed(
        "select g, sum(v) as s, sum(n) as sn, avg(v) as a, min(v) as low, bool_or(ok) as o from t group by g",
        "select count(*) as n, count(v) as c, sum(v) as s, avg(n) as a, bool_and(ok) as o from t",
        "select sum(v) filter (where h = 1) as s, count(*) filter (where h = 1) as n from t",
        "select count(*) as n from t having count(*) > 2",
        'select 1 as one, max(g collate "C") as last from t',
    )
    tables.after("update t set v = null, n = null where g = 'a'")
    tables.after("update t set v = 3 where id = 1", "update t set ok = null")
    tables.after("delete from t where id > 2")
    tables.after("delete from t")
    tables.read_the_same()
    tables.after("insert into t (id, h) values (1, 1)")
    tables.after("delete from t", "insert into t (id, v, n, ok) values (2, 1, 1, false)")
    tables.read_the_same()


@pytest.mark.light
def test_extrema_are_found_again_when_they_go(values, followed):
    tables = followed(
        "select g, min(v) as low, max(v) as top, max(n) as most, min(id) as first from t group by g",
        "select min(v) as low, max(v) as top from t",
        "select g, max(v) filter (where ok) as top from t group by g",
        "select a.g, max(b.v) as top from t a join t b on a.h = b.h group by a.g",
        "select g, max(v) - min(v) as spread from t group by g having max(v) > 5",
        "select g, min(f) as low, max(f) as top from t group by g",
    )
    tables.after("delete from t where id = 3")
    tables.after("delete from t where id = 1")
    tables.after("update t set v = v - 9 where id = 2", "insert into t values (7, 'a', 1, 2, 3, 4, true)")
    tables.after("update t set v = 100 where id = 2")
    tables.after("update t set v = 50 where id = 2", "delete from t where id = 7")
    tables.after("delete from t where id = 2", "insert into t values (2, 'a', 1, 50, 3, 4, true)")
    tables.after("update t set v = null", "insert into t values (3, 'b', 1, 1, 1, 1, true)")
    tables.after("update t set g = 'c', f = -f")


def test_extrema_are_found_again_without_evaluating_what_nobody_reads(values, followed):
    # PostgreSQL never evaluates the subquery, which has several rows
    rows = "(select t.*, (select u.v from t u) as unread from t) s"
    tables = followed(
        f"select g, max(v) as top, min(v) as low from {rows} group by g",
        f"select max(v) as top, min(v) as low from {rows}",
        "select last, max(v) as top"
        f" from (select s.*, last_value(h) over (order by id) as last from {rows}) w group by last",
    )
    tables.after("delete from t where id = 3")
    tables.after("delete from t where id = 1")
    tables.after("update t set v = 100 where id = 2", "insert into t values (7, 'a', 1, 2, 3, 4, true)")
    tables.after("update t set v = 50 where id = 2", "delete from t where id = 7")


def test_having_is_crossed_and_crossed_again(values, followed):
    tables = followed(
        "select g, count(*) as n from t group by g having count(*) > 2",
        "select h, sum(v) as s from t group by h having sum(v) > 10 and min(v) < 10",
        "select g from t group by g having bool_or(ok)",
        "select h, array_agg(id order by id) as ids from t group by h having count(distinct g) > 1",
    )
    tables.after("delete from t where id = 3")
    tables.after("insert into t values (3, 'a', 2, 9, 1, 1, true)", "update t set h = 2 where id = 1")
    tables.after("update t set g = 'b' where id = 3")
    tables.after("update t set g = 'a' where id in (3, 6)", "delete from t where id = 1")
    tables.after("insert into t values (1, 'a', 1, 1, 1, 1, null)", "update t set ok = not ok")
    tables.after("update t set v = 100 where id = 1", "update t set v = 1 where id = 1")


def test_averages_and_deviations_are_exact_to_the_letter(values, followed):
    tables = followed(
        "select g, avg(v) as a, avg(n) as an, sum(n) as s, sum(v) as sv from t group by g",
        "select g, avg(n * v) as a, sum(n * 2) as twice, sum(-n) as neg from t group by g",
        "select g, stddev(v) as d, variance(n) as v, stddev_pop(v) as p from t group by g",
        "select avg(v) as a, avg(n) as an, sum(v::bigint) as big, avg(h::smallint) as small from t",
        "select h, avg(v) filter (where n > 1.75) as a, round(avg(n), 3) as r from t group by h",
    )
    tables.after("update t set n = n / 3, v = 1 where g = 'a'")
    tables.read_the_same()
    tables.after(
        "delete from t where g = 'a' and id > 1",
        "insert into t values (9, 'z', 9, 2147483647, 0.01, 0, true)",
    )
    tables.read_the_same()
    tables.after(
        "insert into t values (10, 'z', 9, 2147483647, 99999999.99, 0, true)", "delete from t where id = 1"
    )
    tables.read_the_same()
    tables.after("update t set n = 0, v = 0")
    tables.read_the_same()


def test_sums_of_floats_do_not_drift(values, followed):
    tables = followed(
        "select g, sum(f) as s, avg(f) as a from t where f <> 'NaN' group by g",
        "select g, sum(f) as s, count(*) as n from t group by g",
        "select f, count(*) as n from t group by f",
    )
    tables.after("insert into t (id, g, f) values (7, 'a', 1e150), (8, 'b', 'Infinity'), (9, 'c', '-0')")
    tables.after("delete from t where id in (7, 8)")
    tables.after("update t set f = 0.3 where g = 'a'", "delete from t where f = 'NaN'")
    tables.after("update t set f = 'NaN' where id = 9", "delete from t where id = 5")


def test_decimals_that_spark_has_no_value_for_are_still_right(source, stream_table):
    from pgtrickle.model.stream_table import Action

    numbers = source(
        "t(id int primary key, g int, n numeric, p numeric(20,4))", rows=[(1, 1, "1.10", 1), (2, 1, "2", 2)]
    )
    plain = stream_table(
        "select g, sum(n) as s, max(n) as top, avg(n) as a from t group by g", mode="DIFFERENTIAL"
    )
    rows = stream_table("select id, n from t", mode="DIFFERENTIAL")
    merged = stream_table("select g, sum(p) as s, max(p) as top from t group by g", mode="AUTO")
    for statements in (
        ("insert into t values (3, 1, 'NaN', 1), (4, 2, 'NaN', 'NaN'), (5, 2, 1e100, 5)",),
        ("delete from t where id = 3", "insert into t values (6, 1, 1.100, 3)"),
        (
            "delete from t where p = 'NaN'",
            "update t set n = n + 0.000000000000000000000000000001 where id = 1",
        ),
        ("update t set p = p + 1",),
        ("delete from t where g = 2",),
    ):
        numbers.change(*statements)
        for table in (plain, rows):
            assert table.refresh().action is Action.DIFFERENTIAL
        merged.refresh()
        for table in (plain, rows, merged):
            table.equals_its_query()
    numbers.change("update t set p = p + 1")
    assert merged.refresh().action is Action.DIFFERENTIAL
    merged.equals_its_query()


def test_infinite_decimals_are_still_right(source, stream_table, pg_version):
    numbers = source("t(id int primary key, n numeric)", rows=[(1, "Infinity"), (2, 1)])
    tables = [
        stream_table("select id, n from t"),
        stream_table("select n > 5 as big, count(*) as c, max(n) as top, sum(n) as s from t group by n > 5"),
        stream_table("select distinct n from t"),
    ]
    for statements in (
        ("insert into t values (3, '-Infinity'), (4, 'NaN')",),
        ("delete from t where id = 1",),
    ):
        numbers.change(*statements)
        for table in tables:
            table.refresh()
            table.equals_its_query()


def test_a_distinct_row_stays_while_one_copy_is_left(source, followed):
    source("t(a int, b text)", rows=[(1, "x"), (1, "x"), (2, None), (2, None), (None, None)])
    source("u(a int, b text)", rows=[(1, "x"), (3, "y")])
    one = "(select ctid from t where a = {0} limit 1)"
    tables = followed(
        "select distinct a, b from t",
        "select distinct a from t where b is null",
        "select a, b from t union select a, b from u",
        "select a, b from t union all select a, b from u",
        "select distinct t.a from t join u on u.a = t.a",
        "select d.a, u.b from (select distinct a from t) d join u on u.a = d.a",
        "select count(*) as n from (select distinct a, b from t) d",
        "select x.a from (select a from t union select a from u) x join u on u.a = x.a",
        "select count(distinct a) as n, b from t group by b",
    )
    tables.after(f"delete from t where ctid = {one.format(1)}", f"delete from t where ctid = {one.format(2)}")
    tables.after("delete from t where a = 1", "insert into t values (2, null), (3, 'y')")
    tables.after("delete from t where a = 2", "insert into u values (2, null)", "delete from u where a = 3")
    tables.after("insert into t values (1, 'x'), (1, 'x')", "delete from u where a = 1")
    tables.after("delete from t", "delete from u")
    tables.after("insert into u values (null, null)", "insert into t values (null, null)")


def test_an_aggregate_without_keys_stays_where_a_change_reaches_no_row(source, followed):
    """The change joins with nothing, so that nothing is read; over nothing the aggregate would be null."""
    source("beta(id int primary key, k int)")
    source("delta(k int)")
    source("epsilon(k int, l int, primary key (k, l))", rows=[(2, 3)])
    joined = "beta r1 join delta r2 on true right join epsilon r3 on r2.k = r3.l"
    tables = followed(
        f"select string_agg('x', '') as c from {joined}",
        f"select string_agg(r3.l::text, ',' order by r3.l) as c from {joined}",
        f"select count(*) as n, array_agg(r1.k order by r1.k) as ks from {joined}",
    )
    tables.after("insert into beta values (10, 0)")
    tables.after("insert into delta values (3)")
    tables.after("delete from delta", "insert into epsilon values (1, 1)")
    tables.after("delete from epsilon")
