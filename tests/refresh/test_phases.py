"""Every refresh says how long it read, computed and applied, whatever way it went."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

import pgtrickle
from pgtrickle.catalog.tables import find
from pgtrickle.model.errors import RefreshFailed
from pgtrickle.model.phases import Phase, PhaseTimes
from pgtrickle.model.settings import SparkPath
from pgtrickle.model.stream_table import Action, RefreshOutcome
from pgtrickle.refresh.outcome import Failure
from pgtrickle.refresh.phases import PhaseClock
from pgtrickle.refresh.story import refresh_all
from pgtrickle.scheduler.service.failures import note_failure

QUERY = "select customer, count(*) as orders, max(amount) as most from orders group by customer"


class Clock:
    """A clock that moves when a test says so, by milliseconds."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def move(self, milliseconds: float) -> None:
        self.seconds += milliseconds / 1000

    def fail(self, milliseconds: float) -> None:
        self.move(milliseconds)
        raise ValueError("no")


@pytest.fixture
def clock():
    return Clock()


def test_every_moment_belongs_to_the_innermost_phase(clock):
    phases = PhaseClock(seconds=lambda: clock.seconds)
    clock.move(1)
    with phases.measure(Phase.APPLY):
        clock.move(10)
        with phases.measure(Phase.READ):
            clock.move(100)
        with phases.measure(Phase.APPLY):
            clock.move(20)
    with phases.measure(Phase.COMPUTE):
        clock.move(1000)
    times = phases.take()
    assert [round(part) for part in (times.read_ms, times.compute_ms, times.apply_ms, times.other_ms)] == [
        100,
        1000,
        30,
        1,
    ]
    assert round(times.total_ms) == 1131
    assert phases.take() == PhaseTimes()


def test_a_phase_that_fails_ends_all_the_same(clock):
    phases = PhaseClock(seconds=lambda: clock.seconds)
    with pytest.raises(ValueError, match="no"), phases.measure(Phase.READ):
        clock.fail(5)
    clock.move(2)
    times = phases.take()
    assert (round(times.read_ms), round(times.other_ms)) == (5, 2)


def test_measuring_costs_microseconds():
    phases = PhaseClock()
    began = time.thread_time()
    for _ in range(1000):
        with phases.measure(Phase.READ):
            pass
    assert time.thread_time() - began < 0.1


@pytest.fixture
def orders(source):
    rows = [(number, number % 5, number) for number in range(100)]
    return source("orders(id int primary key, customer int, amount int)", rows=rows)


def parts(outcome: RefreshOutcome) -> tuple[float, float, float]:
    assert outcome.read_ms is not None
    assert outcome.compute_ms is not None
    assert outcome.apply_ms is not None
    found = outcome.read_ms, outcome.compute_ms, outcome.apply_ms
    assert sum(found) <= outcome.milliseconds + 0.001
    return found


@pytest.mark.light
def test_a_change_is_read_computed_and_applied(orders, stream_table):
    sums = stream_table(QUERY)
    orders.change("insert into orders values (1000, 1, 7)")
    outcome = sums.refresh()
    assert outcome.action is Action.DIFFERENTIAL
    assert min(parts(outcome)) > 0
    assert outcome.wait_ms is not None
    assert outcome.wait_ms > 0
    assert outcome.commit_ms is not None
    assert outcome.commit_ms > 0


def test_a_recomputed_query_is_computed_and_applied(orders, stream_table):
    sums = stream_table(QUERY, mode="FULL")
    orders.change("insert into orders values (1000, 1, 7)")
    outcome = sums.refresh()
    read, compute, apply = parts(outcome)
    assert min(compute, apply) > 0
    assert read > 0, "the windows are counted"


def test_what_tasks_compute_is_computed(orders, stream_table, engine):
    engine.path = SparkPath.DISTRIBUTED
    sums = stream_table(QUERY)
    orders.change("insert into orders values (1000, 1, 7)")
    read, compute, apply = parts(sums.refresh())
    assert min(read, apply) > 0
    assert compute > read


def test_tables_that_are_refreshed_together_share_what_is_done_for_both(orders, stream_table, engine):
    tables = [stream_table(QUERY), stream_table("select id, amount from orders where amount > 3")]
    orders.change("update orders set amount = amount + 10 where id < 50")
    with engine.connection() as connection:
        ids = [find(connection, table.name).id for table in tables]
    outcomes = refresh_all(engine, ids, initiated_by="test", waits=True)
    assert all(isinstance(outcome, RefreshOutcome) for outcome in outcomes)
    first, second = (parts(outcome) for outcome in outcomes if isinstance(outcome, RefreshOutcome))
    assert first[:2] == pytest.approx(second[:2]), "one read and one computation for both"
    assert min(*first, *second) > 0


@pytest.mark.light
def test_the_history_has_the_phases_in_every_interface(orders, stream_table, app, dsn):
    sums = stream_table(QUERY)
    orders.change("insert into orders values (1000, 1, 7)")
    outcome = sums.refresh()
    stored = app.execute(
        "select read_ms, compute_ms, apply_ms from pgtrickle.visible_history order by refresh_id desc limit 1"
    ).fetchone()
    assert stored == parts(outcome)
    with pgtrickle.connect(dsn) as trickle:
        latest = trickle.history(sums.name)[0]
    assert (latest.read_ms, latest.compute_ms, latest.apply_ms) == stored
    columns = app.execute("select * from pgtrickle.get_refresh_history(%s)", (sums.name,)).description
    assert "read_ms" not in [column.name for column in columns or ()]


def test_a_failed_refresh_has_no_phases(orders, stream_table, app, engine, connection):

    sums = stream_table(QUERY)
    table = find(connection, sums.name)
    note_failure(connection, Failure(table, RefreshFailed("no")), datetime.now(UTC), "test")
    stored = app.execute(
        "select status, read_ms, compute_ms, apply_ms from pgtrickle.visible_history"
        " order by refresh_id desc limit 1"
    ).fetchone()
    assert stored == ("FAILED", None, None, None)
