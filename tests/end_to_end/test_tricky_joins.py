"""Joins whose sides change in one window: keys move, partners go, duplicates multiply."""

from __future__ import annotations

import pytest


@pytest.mark.light
def test_both_sides_of_a_join_change_in_one_window(source, followed):
    source("a(id int primary key, k int, v int)", rows=[(1, 1, 10), (2, 2, 20), (3, None, 30), (4, 4, 40)])
    source(
        "b(id int primary key, k int, w text)", rows=[(1, 1, "x"), (2, 2, "y"), (3, None, "n"), (4, 1, "z")]
    )
    tables = followed(
        "select a.id, b.id as b, a.v, b.w from a join b on a.k = b.k",
        "select a.v, b.w from a join b using (k)",
        "select a.id, b.id as b from a join b on a.k < b.k or a.v = b.id",
        "select b.w, count(*) as n, sum(a.v) as s, min(a.v) as low from a join b on a.k = b.k group by b.w",
    )
    tables.after("insert into a values (5, 5, 50)", "insert into b values (5, 5, 'new')")
    tables.after("delete from a where k = 1", "delete from b where k = 1")
    tables.after(
        "update a set k = 5 where id = 2", "delete from b where k = 5", "update b set k = 2 where id = 3"
    )
    tables.after("update b set k = null where id = 2", "update a set k = null where id = 2")
    tables.after("update a set k = 2", "update b set k = 2", "insert into a values (1, 2, 0)")
    tables.after("delete from a", "delete from b")
    tables.after("insert into a values (1, 1, 1)")
    tables.after("insert into b values (1, 1, 'back')")
    tables.stand_still()


def test_rows_of_five_joined_tables_are_deleted_together(source, followed):
    for n in range(1, 6):
        source(f"t{n}(id int primary key, up int)", rows=[(i, i) for i in range(1, 5)])
    tables = followed(
        "select t1.id as a, t2.id as b, t3.id as c, t4.id as d, t5.id as e from t1 join t2 on t2.up = t1.id"
        " join t3 on t3.up = t2.id join t4 on t4.up = t3.id join t5 on t5.up = t4.id",
        "select t1.up, count(*) as n, max(t3.id) as top from t1, t2, t3 where t1.id = t2.id and t3.up = t1.up"
        " group by t1.up",
    )
    tables.after(*(f"delete from t{n} where id = 1" for n in range(1, 6)))
    tables.after(
        *(f"update t{n} set up = up % 4 + 1" for n in range(1, 6)),
        *(f"insert into t{n} values (1, 2), (9, 9)" for n in range(1, 6)),
        "delete from t3 where id = 9",
    )
    tables.after("update t1 set id = id + 100", "update t2 set up = up + 100", "delete from t5 where id = 2")


def test_keys_of_every_kind_move(source, followed):
    source("p(id int primary key, name text)", rows=[(1, "one"), (2, "two"), (3, "three")])
    source(
        "c(id int primary key, p int, g text, v int)", rows=[(1, 1, "x", 1), (2, 2, "y", 2), (3, 2, "x", 3)]
    )
    tables = followed(
        "select id, name from p",
        "select c.id, p.name, c.v from c join p on p.id = c.p",
        "select p.id, p.name, count(*) as n, sum(c.v) as s from c join p on p.id = c.p group by p.id",
        "select g, array_agg(id order by id) as ids from c group by g",
    )
    tables.after("update p set name = name || '.' where id = 3")
    tables.after("update c set p = 3 - p where p in (1, 2)")
    tables.after("update c set id = id + 10", "update c set id = id - 9 where id > 11")
    tables.after("update p set id = id + 1 where id = 3", "update c set p = 4 where p = 1")
    tables.after("update c set g = case g when 'x' then 'y' else 'x' end")
    tables.after("delete from p where id = 2", "insert into p values (2, 'two again')")


def test_two_primary_keys_are_swapped_in_one_statement(source, followed):
    source("p(id int primary key deferrable, name text)", rows=[(1, "one"), (2, "two"), (3, "three")])
    source("c(id int, p int)", rows=[(1, 1), (2, 2), (2, 2), (3, 3)])
    tables = followed(
        "select id, name from p",
        "select p.id, p.name, c.id as c from p join c on c.p = p.id",
        "select p.id, max(p.name) as name, count(*) as n from p join c on c.p = p.id group by p.id",
    )
    tables.after("update p set id = 3 - id where id < 3")
    tables.after("update p set id = id % 3 + 1", "update c set p = p % 3 + 1")
    tables.after("update p set id = 4 - id", "update c set id = 0")


def test_a_self_join_follows_its_own_changes(source, followed):
    source(
        "staff(id int primary key, boss int, pay int)", rows=[(1, None, 9), (2, 1, 5), (3, 1, 5), (4, 2, 1)]
    )
    tables = followed(
        "select e.id, b.id as boss, b.pay - e.pay as gap from staff e join staff b on b.id = e.boss",
        "select a.id, b.id as peer from staff a join staff b on a.boss = b.boss and a.id < b.id",
        "select e.id, g.id as top from staff e join staff b on b.id = e.boss join staff g on g.id = b.boss",
        "select b.id, count(*) as n, sum(e.pay) as s from staff e join staff b on b.id = e.boss group by 1",
        "select a.pay, b.pay as other from staff a, staff b",
    )
    tables.after(
        "update staff set boss = 3 where id = 4", "update staff set pay = pay + 1 where id in (3, 4)"
    )
    tables.after("delete from staff where id = 2", "insert into staff values (5, 4, 2), (6, 6, 7)")
    tables.after("update staff set boss = id", "delete from staff where id = 5")
    tables.after("update staff set id = id + 1 where id = 6", "update staff set boss = 7")
    tables.stand_still()


def test_duplicates_multiply_through_joins_and_leave_one_by_one(source, followed):
    one = "(select ctid from {0} where k = {1} limit 1)"
    source("l(k int, v int)", rows=[(1, 1)] * 3 + [(2, 2)] * 2 + [(None, 3)] * 2)
    source("r(k int, w numeric)", rows=[(1, 10)] * 2 + [(2, 20)] * 3)
    tables = followed(
        "select k, v from l",
        "select l.v, r.w from l join r on l.k = r.k",
        "select l.k, count(*) as n, sum(l.v) as s from l join r on l.k = r.k group by l.k",
        "select l.k, sum(r.w) as s, count(distinct r.w) as d from l join r on l.k = r.k group by l.k",
        "select distinct l.v from l join r on l.k = r.k",
        "select a.v from l a join l b on a.k = b.k",
        "select v from l union all select k from l",
    )
    tables.after(
        f"delete from l where ctid = {one.format('l', 1)}", f"delete from r where ctid = {one.format('r', 2)}"
    )
    tables.after(
        f"update l set k = 2 where ctid = {one.format('l', 1)}", "insert into r values (1, 10), (1, 10.0)"
    )
    tables.after("insert into l select * from l", "delete from r where k = 1")
    tables.after(
        f"update l set v = v + 1 where ctid = {one.format('l', 2)}", "insert into l values (null, 3)"
    )
    tables.after("delete from l where k is null", "update r set k = 1 where k = 2")
    tables.after("delete from l")


def test_a_cross_join_and_an_empty_table_follow(source, followed):
    source("a(x int)")
    source("b(y int)", rows=[(1,), (1,), (None,)])
    tables = followed(
        "select x, y from a, b",
        "select count(*) as n, sum(x) as sx, max(y) as my from a cross join b",
        "select x from a where x > 0 union select y from b",
        "select a.x from a join b on a.x = b.y and a.x <> 3",
    )
    tables.after("insert into b values (2)")
    tables.after("insert into a values (1), (null)", "delete from b where y = 2")
    tables.after("delete from b", "insert into a values (3)")
    tables.after("insert into b values (3)", "delete from a where x = 1")
    tables.after("delete from a")


def test_views_over_views_are_followed_to_their_tables(source, followed, app):
    source(
        "orders(id int primary key, customer int, amount numeric(10,2))",
        rows=[(1, 1, 5), (2, 1, 7), (3, 2, 1)],
    )
    source("customers(id int primary key, name text)", rows=[(1, "Ann"), (2, "Bob")])
    app.execute("create view big as select * from orders where amount > 2")
    app.execute(
        "create view totals as select customer, sum(amount) as total, count(*) as n from big group by 1"
    )
    app.execute(
        'create view named("who", "how much") as'
        " select c.name, t.total from totals t join customers c on c.id = t.customer"
    )
    app.execute("grant select on big, totals, named to trickle")
    tables = followed(
        'select "who", "how much" from named where "how much" is not null',
        "select customer, total from totals where n > 1",
        "select b.id, c.name from big b join customers c on c.id = b.customer",
        "select a.customer, b.n from totals a join totals b on a.n = b.n",
        "select max(n) as top, count(*) as c from totals",
    )
    tables.after("update orders set amount = amount - 4", "insert into customers values (3, 'Cid')")
    tables.after(
        "update orders set customer = 3 where id = 2", "insert into orders values (4, 2, 100), (5, 3, 100)"
    )
    tables.after("delete from customers where id = 3", "update orders set amount = 1 where id = 4")
    tables.after("delete from orders")


@pytest.mark.parametrize(
    "query",
    [
        "select a.id, b.id as b from a join b on a.k is not distinct from b.k",
        "select k, s from (select k, sum(v) as s from a group by k) t where s > 3",
        "select k, s from (select k, sum(v) as s from a group by k) t where s > 3.5",
        "select max(s) as top from (select k, sum(v) as s from a group by k) t",
    ],
)
def test_comparisons_above_joins_and_groups_are_differential(source, followed, query):
    source("a(id int primary key, k int, v numeric(10,2))", rows=[(1, 1, 2), (2, None, 3), (3, 1, 2)])
    source("b(id int primary key, k int)", rows=[(1, 1), (2, None), (3, 2)])
    tables = followed(query)
    tables.after("update a set k = null where id = 1", "update b set k = 1 where id = 3")
    tables.after("insert into a values (4, null, 0.5), (5, 1, 9)", "delete from b where id = 2")


def test_functions_join_on_every_side(source, followed):
    source(
        "t(id int primary key, k int, l int[])",
        rows=[(1, 1, [1, 2, None]), (2, 3, []), (3, None, None), (4, 0, [0])],
    )
    source("u(k int, y int)", rows=[(1, 2), (3, 1), (None, 0)])
    tables = followed(
        "select t.id, e.a from t left join lateral unnest(t.l) e(a) on e.a > t.k",
        "select t.id, u.y, e.a from t left join u on u.k = t.k left join lateral unnest(t.l) e(a)"
        " on e.a = u.y",
        "select t.id, g.n from t left join generate_series(0, 3) g(n) on g.n = t.k",
        "select t.id, g.n from t right join generate_series(0, 3) g(n) on g.n = t.k",
        "select k, t.id from t full join generate_series(0, 3) g(k) using (k)",
        "select g.n, count(t.id) as c, count(u.y) as d from generate_series(0, 3) g(n) left join t"
        " on t.k = g.n left join u on u.k = g.n group by g.n",
        "select k, t.id from t join generate_series(0, 1) g(k) using (k)",
    )
    tables.after("update t set k = 2 where id = 1", "insert into t values (5, 3, '{3,4}')")
    tables.after("update t set l = l || 7 where id < 4", "delete from u where k = 3")
    tables.after("update u set y = 7, k = 2", "delete from t where id = 4")
    tables.after("delete from t", "insert into u values (1, 1)")
    tables.after("insert into t values (1, 1, '{1}')")


def test_a_count_of_nothing_is_joined_with_tables_that_change(source, followed):
    source("t(id int, v int)", rows=[(1, 1), (1, 1), (2, 5)])
    nothing = "(select count(*) as n from t where v = 99) c"
    tables = followed(
        f"select c.n, a.id as a, b.id as b from {nothing}, t a, t b",
        f"select c.n, a.id from {nothing} left join t a on true",
        f"select a.id, c.n from t a left join {nothing} on true",
        f"select a.id, c.n from t a full join {nothing} on a.id = c.n",
    )
    tables.after("delete from t where ctid = (select min(ctid) from t)")
    tables.after("insert into t values (1, 1), (0, 3)", "update t set v = v + 1 where id = 2")
    tables.after("insert into t values (7, 99)", "delete from t where id = 1")
    tables.after("delete from t")
    tables.after("insert into t values (1, 99)")
    tables.stand_still()
