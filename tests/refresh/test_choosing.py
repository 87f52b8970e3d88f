"""A stream table that leaves the choice to us gets the strategy that its history shows to be faster."""

from __future__ import annotations

import pytest

from pgtrickle.catalog.tables import find
from pgtrickle.model.stream_table import Action
from pgtrickle.refresh.decide.cost_model import CostLimits
from pgtrickle.refresh.decide.costs import Costs

ROWS = 300
QUERY = "select customer, count(*) as orders, max(amount) as most from orders group by customer"


@pytest.fixture
def orders(source):
    rows = [(number, number % 20, number) for number in range(ROWS)]
    return source("orders(id int primary key, customer int, amount int)", rows=rows)


@pytest.fixture
def settled(engine):
    """An engine for which no table is too young for a choice, and no refresh too short."""
    engine.costs = Costs(CostLimits(settles_seconds=0, worth_milliseconds=0, many_rows=10 * ROWS))
    return engine


@pytest.fixture
def history(connection):
    """Writes refreshes into the history of a stream table, as of some minutes ago."""

    def write(name: str, *, delta: float, load: float, minutes: int = 1, count: int = 6) -> None:
        table = find(connection, name)
        connection.execute("update pgtrickle.pgt_refresh_history set strategy = null")
        for number in range(-1, count):
            action, strategy = ("FULL", "load") if number < 0 else ("DIFFERENTIAL", "delta")
            took = load if number < 0 else delta * (1 + number / 100)
            connection.execute(
                "insert into pgtrickle.pgt_refresh_history (pgt_id, start_time, end_time, action, status,"
                " duration_ms, initiated_by, change_row_count, strategy) values (%s, now(),"
                " now() - make_interval(mins => %s), %s, 'COMPLETED', %s, 'test', %s, %s)",
                (table.id, minutes, action, took, 2 * ROWS + number, strategy),
            )
        connection.commit()

    return write


def change_all(orders) -> None:
    orders.change(f"update orders set amount = {ROWS} - amount")


def test_a_large_window_is_loaded_and_a_small_one_followed(orders, stream_table, settled, history):
    sums = stream_table(QUERY)
    history(sums.name, delta=90_000, load=30_000)
    change_all(orders)
    outcome = sums.refresh()
    assert (outcome.action, outcome.reason) == (
        Action.FULL,
        "600 change rows; full expected faster: 30,000 ms against 92,250 ms (median of 6)",
    )
    sums.equals_its_query()
    # the groups' state is that of the load: an extremum that goes away is looked for again
    orders.change("delete from orders where amount > 250")
    outcome = sums.refresh()
    assert (outcome.action, outcome.reason) == (Action.DIFFERENTIAL, "50 change rows")
    sums.equals_its_query()


def test_the_choice_comes_back_once_following_is_fast_again(orders, stream_table, settled, history):
    """The slow refreshes were hours ago: one is tried again, and found to be fast."""
    sums = stream_table(QUERY)
    history(sums.name, delta=200_000, load=100_000, minutes=600)
    actions, reasons = [], []
    for _ in range(4):
        change_all(orders)
        outcome = sums.refresh()
        sums.equals_its_query()
        actions.append(outcome.action)
        reasons.append(outcome.reason)
    assert actions == [Action.FULL] + 3 * [Action.DIFFERENTIAL]
    assert reasons[1] == "600 change rows; differential tried again after 1 full refreshes of such windows"
    assert reasons[2:] == 2 * ["600 change rows"]


def test_what_was_chosen_and_why_is_in_the_history(orders, stream_table, settled, history, connection):
    sums = stream_table(QUERY)
    history(sums.name, delta=90_000, load=30_000)
    change_all(orders)
    outcome = sums.refresh()
    latest = connection.execute(
        "select action, reason, strategy, change_row_count from pgtrickle.pgt_refresh_history"
        " order by refresh_id desc limit 1"
    ).fetchone()
    assert latest == ("FULL", outcome.reason, "load", 600)


def test_differential_means_differential(orders, stream_table, settled, history):
    sums = stream_table(QUERY, mode="DIFFERENTIAL")
    history(sums.name, delta=90_000, load=30_000)
    change_all(orders)
    outcome = sums.refresh()
    assert (outcome.action, outcome.reason) == (Action.DIFFERENTIAL, "600 change rows")


def test_a_young_table_only_follows(orders, stream_table, engine, history):
    sums = stream_table(QUERY)
    history(sums.name, delta=90_000, load=30_000)
    change_all(orders)
    assert sums.refresh().action is Action.DIFFERENTIAL


def test_full_is_tried_for_a_window_larger_than_the_sources(orders, stream_table, settled):
    settled.costs = Costs(CostLimits(settles_seconds=0, many_rows=10))
    sums = stream_table(QUERY)
    orders.change(*(f"update orders set amount = amount + {number}" for number in range(5)))
    outcome = sums.refresh()
    assert outcome.action is Action.FULL
    assert outcome.reason.startswith("3,000 change rows; full tried, since the sources have about ")
    sums.equals_its_query()


def test_another_process_knows_what_this_one_measured(orders, stream_table, settled, connection):
    sums = stream_table(QUERY)
    table = find(connection, sums.name)
    for _ in range(3):
        change_all(orders)
        sums.refresh()
    here, there = settled.costs.of(connection, table.id), Costs().of(connection, table.id)
    assert [s.rows for s in here.deltas] == [s.rows for s in there.deltas] == [600] * 3
    assert len(here.loads) == len(there.loads) == 1
