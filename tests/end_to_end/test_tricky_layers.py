"""Stream tables over stream tables: chains, diamonds with simultaneous changes, an arm that fails."""

from __future__ import annotations

import pytest

from pgtrickle.commands.refresh import refresh as ask_for
from pgtrickle.model.errors import PgTrickleError
from pgtrickle.model.stream_table import Action
from tests.fixtures.bags import assert_same_bag

SALES = "sales(id int primary key, shop int, day int, amount int)"
SHOPS = "shops(id int primary key, city text)"


@pytest.fixture
def sales(source):
    source(SHOPS, rows=[(1, "Bonn"), (2, "Bern"), (3, "Bonn")])
    return source(SALES, rows=[(n, n % 3 + 1, n % 4, n * 5) for n in range(1, 13)])


WINDOWS = (
    ("update sales set amount = amount + 1 where shop = 1", "delete from sales where id = 5"),
    ("update sales set shop = 4 - shop", "update shops set city = 'Basel' where id = 2"),
    ("insert into sales values (50, 1, 9, 1000)", "delete from shops where id = 3"),
    (
        "delete from sales where id = 50",
        "insert into shops values (3, 'Bonn')",
        "update sales set day = 1 where day = 2",
    ),
    ("delete from sales", "insert into sales values (1, 2, 3, 4)"),
)


def test_a_chain_of_three_follows_from_its_end(sales, stream_table, engine):
    daily = stream_table(
        "select shop, day, sum(amount) as total, max(amount) as top from sales group by 1, 2",
        name="daily",
    )
    cities = stream_table(
        "select s.city, d.day, sum(d.total) as total, max(d.top) as top"
        " from daily d join shops s on s.id = d.shop group by s.city, d.day",
        name="cities",
    )
    best = stream_table(
        "select city, max(total) as best, count(*) as days from cities group by city", name="best"
    )
    for statements in WINDOWS:
        sales.change(*statements)
        for table in (daily, cities, best):
            assert ask_for(engine, table.name).action in {Action.DIFFERENTIAL, Action.NO_DATA}
            table.equals_its_query()
    for table in (best, cities, daily):
        assert ask_for(engine, table.name).action is Action.NO_DATA


def test_a_chain_that_is_refreshed_out_of_order_is_right_at_every_step(sales, stream_table, engine):
    kept = stream_table("select id, shop, amount from sales where amount > 10", name="kept")
    sums = stream_table(
        "select shop, sum(amount) as s, min(amount) as low from kept group by shop", name="sums"
    )
    for number, statements in enumerate(WINDOWS):
        sales.change(*statements)
        ask_for(engine, (sums if number % 2 else kept).name)
        ask_for(engine, sums.name)
        sums.equals_its_query()
    for table in (kept, sums):
        ask_for(engine, table.name)
        table.equals_its_query()


@pytest.mark.light
def test_a_diamond_never_mixes_two_versions_of_its_source(sales, stream_table, engine):
    stream_table("select shop, sum(amount) as total from sales group by shop", name="left_arm")
    stream_table(
        "select shop, count(*) as n, sum(amount) as total from sales group by shop", name="right_arm"
    )
    top = stream_table(
        "select l.shop, l.total, r.total as other, r.n from left_arm l join right_arm r using (shop)",
        name="top",
    )
    for statements in WINDOWS:
        sales.change(*statements)
        ask_for(engine, "top")
        top.equals_its_query()
        assert not [row for row in top.rows() if row[1] != row[2]]
        _equals_base(top, "select shop, sum(amount), sum(amount), count(*) from sales group by shop")
    assert ask_for(engine, "top").action is Action.NO_DATA


def test_a_diamond_of_which_one_side_is_the_source_itself_is_followed(sales, stream_table, engine):
    stream_table("select shop, sum(amount) as total, count(*) as n from sales group by shop", name="totals")
    share = stream_table(
        "select s.id, s.shop, s.amount, t.total, t.n from sales s join totals t using (shop)",
        name="share",
    )
    counted = stream_table(
        "select shop, count(*) as n, max(total) as total from share group by shop", name="counted"
    )
    for statements in WINDOWS:
        sales.change(*statements)
        ask_for(engine, "share")
        share.equals_its_query()
        ask_for(engine, "counted")
        counted.equals_its_query()
        _equals_base(counted, "select shop, count(*), sum(amount) from sales group by shop")


def test_a_deep_diamond_with_changes_at_every_level_is_followed(sales, stream_table, engine):
    stream_table("select id, shop, amount from sales where day <> 3", name="kept")
    stream_table("select k.id, s.city, k.amount from kept k join shops s on s.id = k.shop", name="placed")
    stream_table("select distinct city from shops", name="towns")
    top = stream_table(
        "select t.city, count(*) as n, sum(p.amount) as s from towns t join placed p on p.city = t.city"
        " join kept k on k.id = p.id group by t.city",
        name="top",
    )
    for statements in WINDOWS:
        sales.change(*statements)
        ask_for(engine, "top")
        top.equals_its_query()
        _equals_base(
            top,
            "select h.city, count(*), sum(s.amount) from sales s join shops h on h.id = s.shop"
            " where s.day <> 3 group by h.city",
        )


def _equals_base(table, query):
    """All the way down: what the tables below say agrees with the base tables too."""
    assert_same_bag(table.connection, f"select * from {table.name}", query)


def test_a_failing_arm_holds_the_tables_above_and_nobody_else(sales, stream_table, engine, app):
    ratio = stream_table("select id, 100 / amount as ratio from sales", name="ratio")
    total = stream_table("select count(*) as n, sum(id) as s from sales", name="total")
    top = stream_table("select r.id, r.ratio, t.n from ratio r cross join total t", name="top")
    before = sorted(top.rows())
    sales.change("update sales set amount = 0 where id = 1", "insert into sales values (90, 1, 1, 1)")
    with pytest.raises(PgTrickleError, match="division by zero"):
        ask_for(engine, "top")
    assert sorted(top.rows()) == before
    ask_for(engine, "total")
    total.equals_its_query()
    sales.change("update sales set amount = 7 where id = 1", "delete from sales where id = 2")
    ask_for(engine, "top")
    for table in (ratio, total, top):
        table.equals_its_query()


@pytest.mark.light
def test_a_stream_table_over_a_full_one_is_differential(sales, stream_table, engine):
    query = "select id, shop, rank() over (order by amount) as r from sales"
    ranked = stream_table(query, name="ranked", mode="FULL")
    above = stream_table("select shop, min(r) as best, count(*) as n from ranked group by shop", name="above")
    for statements in WINDOWS[:3]:
        sales.change(*statements)
        assert ask_for(engine, "ranked").action is Action.FULL
        assert ask_for(engine, "above").action in {Action.DIFFERENTIAL, Action.NO_DATA}
        ranked.equals_its_query()
        above.equals_its_query()


def test_a_stream_table_over_one_that_is_loaded_anew_follows(sales, stream_table, engine, app):
    low = stream_table("select shop, sum(amount) as s from sales group by shop", name="low")
    above = stream_table("select sum(s) as s, max(s) as top from low", name="above")
    sales.change("truncate sales", "insert into sales values (1, 1, 1, 1), (2, 2, 2, 2)")
    ask_for(engine, "low")
    ask_for(engine, "above")
    low.equals_its_query()
    above.equals_its_query()
    sales.change("alter table sales alter column day type bigint", "insert into sales values (3, 1, 1, 1)")
    ask_for(engine, "low")
    ask_for(engine, "above")
    low.equals_its_query()
    above.equals_its_query()
