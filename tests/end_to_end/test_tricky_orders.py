"""Queries whose answer depends on the order of a subquery, or on which query an aggregate belongs to."""

from __future__ import annotations

import pytest

from pgtrickle.model.stream_table import Action


@pytest.fixture
def tables(source):
    source(
        "item(id int primary key, k int, x int, arr int[], j jsonb)",
        rows=[
            (1, 1, 5, [3, 1], '{"b": 1, "a": 2}'),
            (2, 2, 5, [2], "{}"),
            (3, 1, None, None, None),
            (4, None, 1, [], '{"c": [1]}'),
        ],
    )
    source("price(id int primary key, k int, y int)", rows=[(1, 1, 10), (2, 1, 20), (3, 2, None)])


def play(tables, action):
    for statements in (
        ["insert into item values (5, 1, 5, '{9,8,9}', '{\"z\": 0}')"],
        ["update item set x = 0 where id = 1", "delete from item where id = 2"],
        ["update price set y = 7 where id = 3", "insert into price values (4, 2, 9)"],
        ["delete from item where id > 2", "insert into item values (6, 2, 4, '{4}', null)"],
    ):
        tables.after(*statements, actions=frozenset({action, Action.NO_DATA}))


def test_the_order_of_a_subquery_reaches_what_depends_on_it(tables, followed):
    play(
        followed(
            "select array_agg(x) as a, count(*) as n from (select x from item order by id desc) s",
            "select k, array_agg(id) as a from (select id, k from item order by k, x desc, id) s group by k",
            "with o as (select id, x from item order by x, id) select * from o limit 2",
            "select id, row_number() over () as n from (select id from item order by x, id desc) s",
            "select p.y, q.a from price p join (select k, array_agg(id) as a from (select id, k from item"
            " order by k, id desc) o group by k) q on q.k = p.k",
            "select id, array(select i.id from item i where i.k = price.k order by x, id) as a from price",
            "select id, unnest(arr) as v from item order by x, id limit 3",
            "select v from (values (3), (1), (2)) s(v) limit 2",
            "select array_agg(v) as a from (select unnest(arr) as v from item order by id desc) s",
        ),
        Action.DIFFERENTIAL,
    )


def test_an_aggregate_belongs_to_the_query_whose_columns_it_reads(tables, followed):
    play(
        followed(
            "select (select max((select max(p.y) from price p where p.k = o.k))) as m from item o",
            "select k, (select grouping(o.k)) as g, count(*) as n from item o group by rollup (k)",
            "select generate_series(1, x) as g, count(*) as n from item group by 1",
            "select id from (select id, (select y from price) as v from item) q",
            "select id, (jsonb_each(j)).* from item",
            "select q.key from (select (jsonb_each(j)).key, x from item) q where q.key > 'a' and q.x > 0",
        ),
        Action.DIFFERENTIAL,
    )


def test_several_rows_that_postgresql_does_not_ask_for_are_left_to_it(tables, followed):
    asked = followed(
        "select id, v from (select id, (select y from price p where p.k = item.k) as v from item) q"
        " where id = 2",
        "select q.id, q.v, p.y from (select id, (select y from price p where p.k = item.k) as v from item) q"
        " join price p on p.id = q.id + 1 where q.id = 2",
    )
    either = frozenset({Action.DIFFERENTIAL, Action.FULL, Action.REINITIALIZE})
    asked.after("update price set y = 5 where id = 3", actions=either)
    asked.after("insert into item values (7, 1, 1, null, null)", actions=either)


@pytest.mark.light
def test_what_only_the_plan_of_postgresql_decides_is_recomputed(tables, followed):
    play(
        followed(
            "select k, array_agg(id) as a from (select id, k from item order by id desc) s group by k",
            "select 1 as one, k, count(*) as n from item group by grouping sets (one, k)",
            "select id from (select id, k from item order by id desc) s"
            " where k in (select k from price) limit 2",
            "select id, (select y from price p where p.k = item.x) as v from item order by id limit 1",
            mode="AUTO",
        ),
        Action.FULL,
    )
