"""Full refreshes in a row leave the state of a stream table behind, and no change is followed with it."""

from __future__ import annotations

import random

import pytest

from pgtrickle.model.stream_table import Action
from pgtrickle.refresh.decide import action as decisions
from pgtrickle.refresh.decide.cost_model import Choice
from pgtrickle.refresh.decide.costs import Costs
from tests.refresh.test_choosing import EVERYTHING

FULL, FOLLOWED = Choice(True, "full wanted"), Choice(False, "differential wanted")
FIRST_STATE = "full this time, to compute the state for the next differential refresh"

GROUPS = (
    "select customer, count(*) as orders, sum(amount) as total, max(amount) as most from orders group by 1"
)
QUERIES = {
    "merged groups": GROUPS,
    "merged groups, cut": f"{GROUPS} order by 3 desc, 1 limit 3",
    "replaced groups": "select customer, string_agg(id::text, ',' order by id) as ids from orders group by 1",
    "first rows": "select id, amount from orders order by amount desc, id limit 5",
    "one group": "select count(*) as orders, min(amount) as least from orders",
    "rows": "select id, customer, amount * 2 as twice from orders where amount > 20",
    "inner result": "select id, amount from orders where amount > (select avg(amount) from orders)",
    "distinct": "select distinct customer from orders",
}


@pytest.fixture
def orders(source):
    rows = [(number, number % 7, number % 50) for number in range(200)]
    return source("orders(id int primary key, customer int, amount int)", rows=rows)


@pytest.fixture
def wanted(engine, monkeypatch):
    """The choices of the cost model, in the order in which they are made; the last one repeats."""
    engine.costs = Costs(EVERYTHING)
    choices: list[Choice] = []

    def choice(*_args: object, **_options: object) -> Choice:
        return choices.pop(0) if len(choices) > 1 else choices[0]

    monkeypatch.setattr(decisions, "choice", choice)
    return choices


@pytest.fixture
def is_behind(connection):
    def ask() -> bool:
        row = connection.execute("select state_is_behind from pgtrickle.pgt_stream_tables").fetchone()
        connection.commit()
        return bool(row[0])

    return ask


def change(orders, number: int) -> None:
    """Several changes that meet in one window: rows come, go, move to other groups and come back."""
    orders.change(
        f"delete from orders where id % 11 = {number % 11}",
        f"update orders set amount = amount + {number} where id % 5 = {number % 5}",
        f"update orders set customer = (customer + 1) % 7 where id % 7 = {number % 7}",
        f"insert into orders select {1000 * (number + 1)} + n, n % 9, n % 60 from generate_series(1, 15) n",
        f"update orders set amount = 99 where id = {1000 * (number + 1) + 3}",
        f"delete from orders where id = {1000 * (number + 1) + 3}",
    )


def test_the_second_full_refresh_in_a_row_leaves_the_state_behind(orders, stream_table, wanted, is_behind):
    sums = stream_table(GROUPS)
    found = []
    wanted += [FULL, FULL, FULL, FOLLOWED]
    for number in range(6):
        change(orders, number)
        outcome = sums.refresh()
        found.append((outcome.action, is_behind(), FIRST_STATE in outcome.reason))
        sums.equals_its_query()
    assert found == [
        (Action.FULL, False, False),
        (Action.FULL, True, False),
        (Action.FULL, True, False),
        (Action.FULL, False, True),
        (Action.DIFFERENTIAL, False, False),
        (Action.DIFFERENTIAL, False, False),
    ]


def test_a_full_refresh_between_differential_ones_computes_the_state(orders, stream_table, wanted, is_behind):
    sums = stream_table(GROUPS)
    actions = []
    wanted += [FOLLOWED, FULL, FOLLOWED, FULL, FOLLOWED]
    for number in range(5):
        change(orders, number)
        actions.append(sums.refresh().action)
        assert not is_behind()
        sums.equals_its_query()
    assert actions == [Action.DIFFERENTIAL, Action.FULL] * 2 + [Action.DIFFERENTIAL]


def test_rows_without_a_state_are_followed_right_after_full_refreshes(
    orders, stream_table, wanted, is_behind
):
    rows = stream_table(QUERIES["rows"])
    actions = []
    wanted += [FULL, FULL, FOLLOWED]
    for number in range(3):
        change(orders, number)
        actions.append(rows.refresh().action)
        assert not is_behind()
        rows.equals_its_query()
    assert actions == [Action.FULL, Action.FULL, Action.DIFFERENTIAL]


def test_a_refresh_without_changes_leaves_the_state_as_it_is(orders, stream_table, wanted, is_behind):
    sums = stream_table(GROUPS)
    wanted += [FULL]
    for number in range(2):
        change(orders, number)
        sums.refresh()
    assert sums.refresh().action is Action.NO_DATA
    assert is_behind()


def test_another_process_does_not_follow_with_a_state_that_is_behind(
    orders, stream_table, wanted, engine, is_behind
):
    sums = stream_table(GROUPS)
    wanted += [FULL, FULL, FOLLOWED]
    for number in range(2):
        change(orders, number)
        sums.refresh()
    engine.costs = Costs(EVERYTHING)
    change(orders, 3)
    outcome = sums.refresh()
    assert (outcome.action, is_behind()) == (Action.FULL, False)
    assert FIRST_STATE in outcome.reason
    sums.equals_its_query()


@pytest.mark.parametrize("created_as", ["AUTO", "FULL"])
@pytest.mark.parametrize("kind", ["merged groups", "inner result"])
def test_the_state_is_computed_after_a_time_in_the_mode_full(
    orders, stream_table, wanted, app, kind, created_as
):
    sums = stream_table(QUERIES[kind], mode=created_as)
    wanted += [FOLLOWED]
    actions = []
    for number, mode in enumerate(["FULL", "DIFFERENTIAL", "DIFFERENTIAL", "FULL", "AUTO", "AUTO"]):
        app.execute("select pgtrickle.alter_stream_table(%s, refresh_mode => %s)", (str(sums.name), mode))
        app.commit()
        change(orders, number)
        actions.append(sums.refresh().action)
        sums.equals_its_query()
    assert actions == [Action.FULL, Action.FULL, Action.DIFFERENTIAL] * 2


def test_what_empties_a_source_computes_the_state(orders, stream_table, wanted, is_behind):
    sums = stream_table(GROUPS)
    wanted += [FULL, FULL, FOLLOWED]
    for number in range(2):
        change(orders, number)
        sums.refresh()
    orders.change("truncate orders", "insert into orders values (1, 1, 1)")
    assert (sums.refresh().action, is_behind()) == (Action.FULL, False)
    sums.equals_its_query()
    change(orders, 4)
    assert sums.refresh().action is Action.DIFFERENTIAL
    sums.equals_its_query()


@pytest.mark.parametrize("kind", QUERIES)
def test_any_order_of_strategies_gives_the_answer_of_the_query(orders, stream_table, wanted, kind):
    table = stream_table(QUERIES[kind])
    chance = random.Random(kind)
    wanted += [FULL]
    actions = set()
    for number in range(12):
        wanted[:] = [chance.choice([FULL, FOLLOWED])]
        change(orders, number)
        actions.add(table.refresh().action)
        table.equals_its_query()
    assert actions == {Action.FULL, Action.DIFFERENTIAL}
