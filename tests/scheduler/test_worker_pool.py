"""WorkerPool take what is most urgent, and nothing before what it waits for has ended."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest

from pgtrickle.model.stream_table import StreamTableId
from pgtrickle.scheduler.policy.units import Unit
from pgtrickle.scheduler.policy.urgency import Urgency
from pgtrickle.scheduler.service.worker_pool import MAX_STARTED, WorkerPool
from tests.fixtures.waiting import eventually

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
BOTH = pytest.mark.parametrize("size", [0, 1, 3])


def unit(number: int, *after: Unit) -> Unit:
    return Unit((StreamTableId(number),), after)


def since(minute: int) -> Urgency:
    """Late since that minute of this hour."""
    return Urgency(False, NOW - timedelta(minutes=60 - minute), 1)


class Running:
    """Notes which units ran, and lets each wait for a sign."""

    def __init__(self, *, holds: bool = False) -> None:
        self.began: list[int] = []
        self.ended: list[int] = []
        self.threads: set[str] = set()
        self.go = threading.Event()
        if not holds:
            self.go.set()

    def __call__(self, given: Unit) -> None:
        self.began.append(given.tables[0])
        self.threads.add(threading.current_thread().name)
        assert self.go.wait(90)
        self.ended.append(given.tables[0])


@BOTH
def test_a_unit_waits_only_for_those_it_comes_after(size: int) -> None:
    running = Running(holds=True)
    workers = WorkerPool(size, running, lambda: NOW)
    first, other = unit(1), unit(2)
    second = unit(3, first)
    workers.submit([(first, since(0)), (second, since(0)), (other, since(1))])
    eventually(lambda: len(running.began) == min(workers.limit, 2))
    assert 3 not in running.began
    assert workers.busy() + workers.queued() == 3
    running.go.set()
    eventually(lambda: len(running.ended) == 3)
    assert running.ended.index(1) < running.began.index(3)
    assert workers.close(30)
    assert (workers.busy(), workers.queued()) == (0, 0)


def test_the_most_urgent_is_taken_first() -> None:
    running = Running(holds=True)
    workers = WorkerPool(1, running, lambda: NOW)
    workers.submit([(unit(1), since(0))])
    eventually(lambda: running.began == [1])
    workers.submit([(unit(2), since(2)), (unit(3), since(1)), (unit(4), since(2))])
    running.go.set()
    eventually(lambda: len(running.ended) == 4)
    assert running.ended == [1, 3, 2, 4]
    workers.close(30)


def test_persistent_workers_are_used_again_and_started_ones_are_bounded() -> None:
    running = Running()
    workers = WorkerPool(2, running, lambda: NOW)
    workers.submit([(unit(number), since(0)) for number in range(50)])
    eventually(lambda: len(running.ended) == 50)
    workers.close(30)
    assert len(running.threads) <= 2
    holding = Running(holds=True)
    started = WorkerPool(0, holding, lambda: NOW)
    started.submit([(unit(number), since(0)) for number in range(20)])
    eventually(lambda: len(holding.began) == MAX_STARTED)
    assert started.busy() == MAX_STARTED
    holding.go.set()
    eventually(lambda: len(holding.ended) == 20)
    assert started.close(30)


@BOTH
def test_closing_waits_for_what_runs_and_starts_nothing_more(size: int) -> None:
    running = Running(holds=True)
    workers = WorkerPool(size, running, lambda: NOW)
    workers.submit([(unit(number), since(0)) for number in range(20)])
    eventually(lambda: len(running.began) == workers.limit)
    assert not workers.close(0.01)
    running.go.set()
    assert workers.close(30)
    assert len(running.ended) == workers.limit
