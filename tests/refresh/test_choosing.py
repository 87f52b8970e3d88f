"""A stream table that leaves the choice to us gets the strategy that is faster."""

from __future__ import annotations

import pytest

from pgtrickle.catalog.tables import find
from pgtrickle.commands.explain import explain
from pgtrickle.model.lru import LruCache
from pgtrickle.model.stream_table import Action
from pgtrickle.refresh.decide.cost_model import CostLimits, Experience, RefreshSample, Strategy
from pgtrickle.refresh.decide.costs import Costs

ROWS = 300
QUERY = "select customer, count(*) as orders, max(amount) as most from orders group by customer"
EVERYTHING = CostLimits(worth_milliseconds=0, worth_rows=0)


@pytest.fixture
def orders(source):
    rows = [(number, number % 20, number) for number in range(ROWS)]
    return source("orders(id int primary key, customer int, amount int)", rows=rows)


@pytest.fixture
def settled(engine):
    """An engine for which no refresh is too short for a choice, and no source too small."""
    engine.costs = Costs(EVERYTHING)
    return engine


@pytest.fixture
def history(connection):
    """Writes refreshes into the history of a stream table, as of some minutes ago."""

    def write(name: str, *, delta: float, full: float, minutes: int = 1) -> None:
        table = find(connection, name)
        connection.execute("update pgtrickle.pgt_refresh_history set strategy = null")
        fulls = 3 * [("FULL", "recompute", full)]
        for action, strategy, took in (*fulls, ("DIFFERENTIAL", "delta", delta)):
            connection.execute(
                "insert into pgtrickle.pgt_refresh_history (pgt_id, start_time, end_time, action, status,"
                " duration_ms, initiated_by, change_row_count, strategy) values (%s, now(),"
                " now() - make_interval(mins => %s), %s, 'COMPLETED', %s, 'test', %s, %s)",
                (table.id, minutes, action, took, 2 * ROWS, strategy),
            )
        connection.commit()

    return write


def change_all(orders) -> None:
    orders.change(f"update orders set amount = {ROWS} - amount")


def test_a_large_window_is_recomputed_and_a_small_one_followed(orders, stream_table, settled, history):
    sums = stream_table(QUERY)
    history(sums.name, delta=90_000, full=30_000)
    change_all(orders)
    outcome = sums.refresh()
    assert (outcome.action, outcome.reason) == (
        Action.FULL,
        "600 change rows; full expected faster: 30,000 ms against 90,000 ms (measured once)",
    )
    sums.equals_its_query()
    # the groups' state is that of the full refresh: an extremum that goes away is looked for again
    orders.change("delete from orders where amount > 250")
    outcome = sums.refresh()
    assert outcome.action is Action.DIFFERENTIAL
    sums.equals_its_query()


def test_the_choice_comes_back_once_following_is_fast_again(orders, stream_table, settled, history):
    """The slow refreshes were hours ago: one is tried again, and found to be fast."""
    sums = stream_table(QUERY)
    history(sums.name, delta=200_000, full=100_000, minutes=600)
    actions = []
    for _ in range(4):
        change_all(orders)
        actions.append(sums.refresh().action)
        sums.equals_its_query()
    assert actions == [Action.FULL] + 3 * [Action.DIFFERENTIAL]


def test_what_was_chosen_and_why_is_in_the_history(orders, stream_table, settled, history, connection):
    sums = stream_table(QUERY)
    history(sums.name, delta=90_000, full=30_000)
    change_all(orders)
    outcome = sums.refresh()
    latest = connection.execute(
        "select action, reason, strategy, change_row_count from pgtrickle.pgt_refresh_history"
        " order by refresh_id desc limit 1"
    ).fetchone()
    assert latest == ("FULL", outcome.reason, "with_state", 600)


def test_differential_means_differential(orders, stream_table, settled, history):
    sums = stream_table(QUERY, mode="DIFFERENTIAL")
    history(sums.name, delta=90_000, full=1)
    change_all(orders)
    outcome = sums.refresh()
    assert (outcome.action, outcome.reason) == (Action.DIFFERENTIAL, "600 change rows")


def test_sources_that_are_too_small_leave_no_choice(orders, stream_table, engine):
    sums = stream_table(QUERY)
    change_all(orders)
    outcome = sums.refresh()
    assert (outcome.action, outcome.reason) == (Action.DIFFERENTIAL, "600 change rows")


def test_the_first_refresh_follows_the_planner(source, stream_table, settled):
    """Nothing was measured: a change of every row reads more than the query does."""
    rows = source("items(id int primary key, kind int, price int)")
    items = stream_table("select kind, sum(price) as total from items group by kind")
    items.refresh()
    rows.change("insert into items select n, n % 7, n from generate_series(1, 30000) n")
    outcome = items.refresh()
    assert outcome.action is Action.FULL
    assert "by the planner's estimate" in outcome.reason
    items.equals_its_query()


def test_a_differential_refresh_that_takes_too_long_is_replaced(source, stream_table, settled, connection):
    """Both were measured to take no time, so following 40,000 change rows takes several times as long."""
    orders = source("orders(id int primary key, customer int, amount int)")
    orders.change("insert into orders select n, n % 50, n from generate_series(1, 20000) n")
    sums = stream_table("select id, customer, amount from orders")
    orders.change("update orders set amount = 1 where id = 1")
    # Spark plans the program, which is allowed for
    sums.refresh()
    table = find(connection, sums.name)
    expect(settled, table.id, delta=1.0, full=1.5)
    orders.change("update orders set amount = amount + 1, customer = customer + 1")
    outcome = sums.refresh()
    assert outcome.action is Action.FULL
    assert "differential stopped after " in outcome.reason
    assert ", since a full refresh takes about 2 ms" in outcome.reason
    sums.equals_its_query()
    # and the connections that were canceled do not disturb what follows
    orders.change("delete from orders where id % 2 = 0")
    sums.refresh()
    sums.equals_its_query()


def expect(engine, table, *, delta: float, full: float) -> None:
    """Let the cost model expect these milliseconds of windows of all sizes."""
    engine.costs = Costs(EVERYTHING)
    known = Experience()
    for strategy, took in ((Strategy.RECOMPUTE, full), (Strategy.DELTA, delta)):
        for power in range(18):
            known = known.after(RefreshSample(strategy, 2**power, took, 9e9))
    engine.costs._known.put(table, known)
    engine.costs._ran = _AlwaysWarm(1)


class _AlwaysWarm(LruCache[object, bool]):
    """Every program has run before."""

    def peek(self, key: object) -> bool:
        return True


SHAPES = {
    "groups": "select customer, count(*) as n, sum(amount) as total, avg(amount) as mean, min(amount) as low,"
    " max(amount) as high, bool_or(amount > 290) as big, count(note) filter (where amount > 5) as noted"
    " from orders group by customer",
    "no groups": "select count(*) as n, sum(amount) as total, max(note) as last from orders",
    "having": "select customer, sum(amount) as total from orders group by customer having count(*) > 3",
    "first groups": "select customer, sum(amount) as total from orders group by customer"
    " order by 2 desc, 1 limit 4",
    "distinct": "select distinct customer, note from orders",
    "evaluated": "select customer, string_agg(note, ',' order by id) as notes, stddev(amount) as dev"
    " from orders group by customer",
    "rows": "select id, note, amount * 1.10 as gross from orders where amount > 10",
    "join": "select o.id, p.id as other from orders o join orders p on p.amount = o.amount + 1",
    "first rows": "select id, amount from orders order by amount desc, id limit 5",
    "subquery": "select id from orders where amount > (select avg(amount) from orders)",
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_full_refresh_leaves_a_state_that_can_be_followed(shape, source, stream_table, engine, connection):
    orders = source(
        "orders(id int primary key, customer int, amount numeric(10, 2), note text)",
        rows=[(n, n % 20, n, f"note {n % 7}") for n in range(ROWS)],
    )
    table = stream_table(SHAPES[shape])
    found = find(connection, table.name)
    changes = (
        ("update orders set amount = 300.5 - amount where id % 3 = 0", "delete from orders where id % 7 = 1"),
        ("insert into orders select 1000 + n, n % 25, n, null from generate_series(1, 50) n",
         "update orders set customer = customer + 1 where id < 40"),
        ("delete from orders where customer = 3",
         "update orders set note = 'x', amount = 1 where id % 5 = 2"),
        ("delete from orders where id > 20",),
    )  # fmt: skip
    for number, statements in enumerate(changes):
        is_full = number % 2 == 0
        expect(engine, found.id, delta=9e8, full=1 if is_full else 9e9)
        orders.change(*statements)
        outcome = table.refresh()
        assert outcome.action is (Action.FULL if is_full else Action.DIFFERENTIAL)
        table.equals_its_query()


def test_explain_says_what_was_measured(orders, stream_table, settled, history):
    sums = stream_table(QUERY)
    history(sums.name, delta=90_000, full=30_000)
    assert explain(settled, sums.name).text.endswith(
        "measured refreshes, by which AUTO chooses:\n"
        "  full: 30,000 ms (measured 3 times)\n"
        "  differential, 600 to 600 change rows: 90,000 ms (measured once)"
    )
