"""After a load Spark plans the programs of the table, so that its first change need not wait for that."""

from __future__ import annotations

import pytest

from pgtrickle.model.errors import SparkFailed
from pgtrickle.model.stream_table import Action
from pgtrickle.pipeline import programs
from pgtrickle.refresh.decide.costs import Costs
from pgtrickle.refresh.execute import plan_ahead
from tests.refresh.test_choosing import EVERYTHING

JOINED = (
    "select c.region, count(*) as orders, max(o.amount) as most"
    " from orders o join customers c on c.id = o.customer group by c.region"
)
ABOVE = "select id, amount from orders where amount > (select avg(amount) from orders)"


@pytest.fixture
def orders(source):
    source("customers(id int primary key, region text)", rows=[(n, f"region {n % 3}") for n in range(20)])
    rows = [(number, number % 20, number) for number in range(100)]
    return source("orders(id int primary key, customer int, amount int)", rows=rows)


@pytest.fixture
def large(engine):
    """An engine for which no source is too small."""
    engine.costs = Costs(EVERYTHING)
    return engine


def refuse(*_args: object) -> None:
    raise AssertionError("a program was planned")


@pytest.mark.parametrize("query", [JOINED, ABOVE], ids=["a join", "an inner result"])
def test_the_first_change_of_all_sources_finds_its_plan(orders, stream_table, large, monkeypatch, query):
    table = stream_table(query, mode="DIFFERENTIAL")
    with monkeypatch.context() as forbidden:
        forbidden.setattr(programs, "plan_in_driver", refuse)
        orders.change(
            "update customers set region = 'region 9' where id = 3",
            "update orders set amount = amount + 7 where id < 10",
            "delete from orders where id = 99",
        )
        assert table.refresh().action is Action.DIFFERENTIAL
    table.equals_its_query()


def test_a_program_that_cannot_be_planned_does_not_fail_the_load(orders, stream_table, large, monkeypatch):
    def fail(*_args: object, **_options: object) -> None:
        raise SparkFailed("no")

    monkeypatch.setattr(plan_ahead, "run_small", fail)
    table = stream_table(JOINED)
    table.equals_its_query()


def test_small_sources_are_not_planned_for(orders, stream_table, engine, monkeypatch):
    monkeypatch.setattr(plan_ahead, "run_small", refuse)
    stream_table(JOINED).equals_its_query()
