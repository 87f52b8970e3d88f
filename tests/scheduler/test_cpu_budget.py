"""While an application is busy, stream tables that follow at once share what CPU time the sidecar may use."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest

from pgtrickle.model.stream_table import Status, StreamTableId
from pgtrickle.model.tier import Tier
from pgtrickle.scheduler.policy.candidate import Candidate
from pgtrickle.scheduler.policy.cpu_budget import (
    BUSY_POLLS,
    CROWDED_DEBT_SECONDS,
    DEBT_SECONDS,
    LONGEST_WAIT,
    POLLS,
    Activity,
    CpuBudget,
    HeldBack,
    is_paced,
)
from pgtrickle.scheduler.policy.schedule import Calculated, Every
from pgtrickle.scheduler.service.cpu_usage import CpuUsage


def played(share: float, cost: float, *, is_idle: bool, seconds: int = 60) -> float:
    """Start units whenever the budget allows it; how much CPU time they use per second, after a while."""
    budget, used, ends_at, total = CpuBudget(share, 4), 0.0, -1.0, 0.0
    for tick in range(seconds * 10):
        now = tick / 10
        budget = budget.after(now, used, is_idle=is_idle)
        used = 0.0
        if now >= ends_at and budget.may_start(0):
            ends_at, used = now + cost, cost
            total += cost if now >= 10 else 0.0
    return total / (seconds - 10)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("cost", [0.05, 0.3, 1.5])
def test_what_is_used_stays_within_the_share(share, cost):
    # a tick is a tenth of a second, so one unit at a time cannot use more than this
    possible = min(share, cost / 0.1)
    assert played(share, cost, is_idle=False) == pytest.approx(possible, rel=0.15)


def test_an_idle_machine_may_be_used():
    assert CpuBudget(0.5, 4, credit=-9, is_idle=True).may_start(9)
    assert not CpuBudget(0.5, 4, credit=-9, is_idle=False).may_start(0)


def test_the_default_share_is_less_while_all_cores_are_in_use():
    def allowed(others: float, *, is_idle: bool = False) -> float:
        budget = CpuBudget(2, 4, crowded_share=1, used=1.0).after(0, 0, is_idle=is_idle)
        return budget.after(1, 1.0, is_idle=is_idle, others=others).allowed

    assert allowed(others=1.0) == 2
    assert allowed(others=3.0) == 1
    assert allowed(others=3.0, is_idle=True) == 4


def test_a_debt_from_before_the_machine_was_crowded_is_soon_paid():
    budget = CpuBudget(1, 2, crowded_share=1 / 3, used=1.0).after(0, 0, is_idle=False)
    indebted = budget.after(1, 500, is_idle=False, others=2.0)
    later = indebted.after(1 + CROWDED_DEBT_SECONDS + 0.1, 0, is_idle=False, others=2.0)
    assert not indebted.may_start(0)
    assert later.may_start(0)


def test_what_has_waited_too_long_starts_without_a_budget_one_at_a_time():
    budget = CpuBudget(1, 2, credit=-9, is_idle=False)
    assert not budget.may_start(0, LONGEST_WAIT - 0.1)
    assert budget.may_start(0, LONGEST_WAIT)
    assert not budget.may_start(1, LONGEST_WAIT)
    held = HeldBack()
    assert held.waited(5) == 0
    held.add([StreamTableId(1)], 5)
    held.add([StreamTableId(2)], 7)
    assert held.waited(8) == 3
    held.release([StreamTableId(1)], 8)
    assert held.waited(8) == 1


def test_a_share_that_was_asked_for_stays_the_same():
    budget = CpuBudget(2, 4, used=1.0).after(0, 0, is_idle=False).after(1, 1.0, is_idle=False, others=3.0)
    assert budget.allowed == 2


def test_no_more_units_run_than_the_share_has_cores():
    budget = CpuBudget(2.5, 4, credit=1, is_idle=False)
    assert [budget.may_start(running) for running in range(4)] == [True, True, False, False]


def test_a_long_refresh_is_not_paid_for_for_ever():
    budget = CpuBudget(1, 4).after(0, 0, is_idle=False).after(1, 500, is_idle=False)
    later = budget.after(1 + DEBT_SECONDS + 0.1, 0, is_idle=False)
    assert not budget.may_start(0)
    assert later.may_start(0)


def test_the_application_is_idle_unless_it_keeps_writing():
    quiet = Activity()
    for poll in range(POLLS):
        quiet = quiet.after(wrote=poll % 3 == 0, others=0.0)
    assert quiet.is_idle
    busy = quiet
    for _ in range(BUSY_POLLS):
        busy = busy.after(wrote=True, others=0.0)
    assert not busy.is_idle


def test_the_application_is_not_idle_while_others_use_the_machine():
    found = Activity()
    for _ in range(POLLS):
        found = found.after(wrote=False, others=1.0)
    assert not found.is_idle


def candidate(**changed) -> Candidate:
    usual = {
        "id": StreamTableId(1),
        "schedule": Calculated(None),
        "status": Status.ACTIVE,
        "is_populated": True,
        "last_refresh_at": None,
        "has_pending_changes": True,
    }
    return Candidate(**{**usual, **changed})


def test_only_what_follows_at_once_is_paced():
    assert is_paced(candidate())
    assert not is_paced(candidate(refresh_requested=True))
    assert not is_paced(candidate(schedule=Every(timedelta(seconds=1))))
    assert not is_paced(candidate(schedule=Calculated(timedelta(seconds=1))))
    assert not is_paced(candidate(tier=Tier.WARM))
    assert not is_paced(candidate(needs_reinit=True))
    assert not is_paced(candidate(is_populated=False))
    assert not is_paced(candidate(status=Status.ERROR))


def test_those_that_wait_longest_go_first_and_tell_the_pace():
    held = HeldBack()
    tables = [StreamTableId(n) for n in range(5)]
    for n, table in enumerate(tables):
        held.add([table], float(n))
    held.add(tables, 9.0)
    assert held.first(2) == (0, 1)
    assert held.pace(10.0) == 10.0
    held.release([tables[0]], 10.0)
    held.add([tables[0]], 10.0)
    assert held.first(9) == (1, 2, 3, 4, 0)
    held.release(tables, 10.0)
    assert len(held) == 0
    for _ in range(300):
        told = held.pace(20.0)
    assert told == 0.0


def test_the_usage_of_this_process_is_measured():
    usage = CpuUsage()
    usage.take(0.0)
    until = time.process_time() + 0.05
    while time.process_time() < until:
        pass
    usage.note_statements(2.0)
    used, _ = usage.take(1.0)
    assert 2.0 < used < 4.0
