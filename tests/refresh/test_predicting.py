"""The cost model chooses what is faster, tries what it does not know, and nothing old pins its choice."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from pgtrickle.refresh.decide.cost_model import (
    ADVANTAGE,
    CLOSE,
    FOLLOW,
    STALE_SECONDS,
    STOP,
    TRY_AGAIN_AFTER,
    CostLimits,
    Estimate,
    Experience,
    RefreshSample,
    Strategy,
    choice,
    delta_time,
    is_settled,
)

LIMITS = CostLimits()
SEEDS = range(60)
KIND = "1,2"


def delta(rows: int, milliseconds: float, at: float = 0.0, changed: str = KIND) -> RefreshSample:
    return RefreshSample(Strategy.DELTA, rows, milliseconds, at, changed=changed)


def full(milliseconds: float, rows: int = 0, at: float = 0.0, changed: str = KIND) -> RefreshSample:
    return RefreshSample(Strategy.RECOMPUTE, rows, milliseconds, at, changed=changed)


def having(*samples: RefreshSample) -> Experience:
    known = Experience()
    for number, sample in enumerate(samples):
        known = known.after(replace(sample, at=sample.at or float(number)))
    return known


def chosen(known: Experience, rows: int, estimate: Estimate | None = None, now: float = 100.0):
    return choice(known, KIND, rows, estimate, now, LIMITS)


def test_full_is_chosen_where_it_was_measured_to_be_faster():
    found = chosen(having(full(300), delta(5_000, 1_000)), 5_000)
    assert (found.is_full, found.reason) == (
        True,
        "full expected faster: 300 ms against 1,000 ms (measured once)",
    )


def test_differential_is_chosen_where_it_was_measured_to_be_faster():
    found = chosen(having(full(3_000), delta(5_000, 1_600), delta(5_000, 1_700)), 5_000)
    assert (found.is_full, found.reason) == (
        False,
        "differential expected faster: 1,600 ms against 3,000 ms (measured 2 times)",
    )
    assert found.stop_ms is not None
    assert found.stop_ms >= STOP * 3_000


@pytest.mark.parametrize(("delta_ms", "full_ms", "is_full"), [(800, 90, True), (90, 800, False)])
def test_the_first_refresh_follows_the_estimates(delta_ms, full_ms, is_full):
    found = chosen(Experience(), 5_000, Estimate(full_ms, delta_ms))
    assert found.is_full is is_full
    assert "by the planner's estimate" in found.reason


def test_spark_has_to_plan_the_first_one():
    estimate = Estimate(full_ms=100, delta_ms=80)
    assert not choice(Experience(), KIND, 10, estimate, 0, LIMITS).is_full
    assert choice(Experience(), KIND, 10, estimate, 0, LIMITS, is_cold=True).is_full


def test_without_an_estimate_the_change_is_followed():
    assert chosen(Experience(), 5_000) == FOLLOW


def test_small_sources_are_not_worth_a_choice():
    assert chosen(Experience(), 5_000, Estimate(1, 900, is_worth_it=False)) == FOLLOW


def test_a_short_refresh_is_not_worth_a_choice():
    known = having(full(1), delta(50, LIMITS.worth_milliseconds - 1))
    assert chosen(known, 50) == FOLLOW
    assert is_settled(having(delta(50, 1)), KIND, 50, LIMITS)


def test_both_strategies_are_measured_if_the_other_may_be_faster():
    near = Estimate(full_ms=100, delta_ms=110)
    assert chosen(having(delta(50, 90)), 50, near).is_full
    assert not chosen(having(full(100, 50)), 50, near).is_full
    far = Estimate(full_ms=9_000, delta_ms=110)
    assert not chosen(having(delta(50, 90)), 50, far).is_full
    hopeless = Estimate(full_ms=100, delta_ms=9_000)
    assert chosen(having(full(100, 50)), 50, hopeless).is_full


def test_a_window_of_another_size_is_estimated_from_the_nearest():
    known = having(full(500, 100), delta(100, 60))
    estimate = Estimate(full_ms=1, delta_ms=1_000, fixed_ms=50)
    found = chosen(known, 100_000, estimate)
    assert found.is_full
    assert "differential about 1,1" in found.reason


def test_windows_of_other_sources_are_another_kind():
    known = having(full(300), delta(5_000, 1_000, changed="3"))
    assert delta_time(known, KIND, 5_000) is None
    assert delta_time(known, "3", 5_000) == 1_000


def test_the_history_serves_all_kinds():
    assert delta_time(having(delta(5_000, 1_000, changed="")), KIND, 5_000) == 1_000


def test_many_small_windows_do_not_make_a_large_one_forgotten():
    known = having(full(500), delta(50_000, 3_000), *(delta(10, 60) for _ in range(500)))
    assert chosen(known, 50_000, now=510).is_full
    assert not chosen(known, 10, now=510).is_full or known.since_full >= TRY_AGAIN_AFTER


def test_a_new_start_makes_earlier_windows_forgotten():
    load = RefreshSample(Strategy.LOAD, 0, 10, 0, is_new_start=True)
    assert delta_time(having(delta(5_000, 1_000), load), KIND, 5_000) is None


def always(milliseconds: float) -> Callable[[int], float]:
    return lambda number: milliseconds


def played(
    delta_costs: Callable[[int], float],
    full_costs: Callable[[int], float],
    rounds: int,
    draw: random.Random,
    *,
    seconds: float = 1.0,
    estimate: Estimate | None = None,
) -> list[bool]:
    """Let the model choose again and again, and measure only what it chose; whether each was full."""
    known, found = Experience(), []
    guess = estimate or Estimate(full_costs(0), delta_costs(0))
    for number in range(rounds):
        preferred = choice(known, KIND, 1_000, guess, number * seconds, LIMITS)
        took = (full_costs if preferred.is_full else delta_costs)(number) * draw.uniform(0.95, 1.05)
        if preferred.stop_ms is not None and took > preferred.stop_ms:
            strategy = Strategy.RECOMPUTE if preferred.is_full else Strategy.DELTA
            ended = RefreshSample(strategy, 1_000, preferred.stop_ms, number * seconds, changed=KIND)
            known = known.after(ended)
            preferred = replace(preferred, is_full=not preferred.is_full)
            took = (full_costs if preferred.is_full else delta_costs)(number)
        strategy = Strategy.RECOMPUTE if preferred.is_full else Strategy.DELTA
        known = known.after(RefreshSample(strategy, 1_000, took, number * seconds, changed=KIND))
        found.append(preferred.is_full)
    return found


def test_after_three_refreshes_the_better_one_is_known_whatever_the_estimate_said():
    for seed in SEEDS:
        draw = random.Random(seed)
        costs = (draw.uniform(30, 3_000), draw.uniform(30, 3_000))
        guess = Estimate(costs[1] * draw.uniform(0.4, 2.5), costs[0] * draw.uniform(0.4, 2.5))
        found = played(always(costs[0]), always(costs[1]), 9, draw, estimate=guess)
        worse = [is_full for is_full in found[3:] if costs[is_full] > 1.25 * min(costs)]
        # what was measured only once, and is not much slower, is measured once more
        assert len(worse) <= (max(costs) <= CLOSE * 1.2 * min(costs))


def test_what_is_cheaper_is_what_is_done():
    for seed in SEEDS:
        draw = random.Random(seed)
        slow, fast = draw.uniform(2, 20) * 400, 400.0
        is_full_cheaper = draw.random() < 0.5
        costs = (slow, fast) if is_full_cheaper else (fast, slow)
        found = played(always(costs[0]), always(costs[1]), 400, draw)
        assert sum(one is is_full_cheaper for one in found) >= 0.85 * len(found)


def test_trying_again_costs_little():
    for seed in SEEDS:
        draw = random.Random(seed)
        factor = draw.uniform(2, 50)
        found = played(always(factor * 400), always(400.0), 600, draw)[3:]
        # a try that is stopped is followed by a full refresh
        wasted = sum(min(factor, STOP) for is_full in found if not is_full)
        assert wasted <= 1.5 / TRY_AGAIN_AFTER * len(found)


def test_a_choice_that_became_wrong_is_undone():
    """Differential was slow and becomes fast: a try finds out, and the old samples count no more."""
    for seed in SEEDS:
        draw = random.Random(seed)
        found = played(lambda n: 900.0 if n < 50 else 250.0, always(500.0), 150, draw)
        assert sum(found[3:50]) > 35
        # full is tried again now and then
        assert sum(found[110:]) <= 2


def test_a_full_time_that_became_wrong_is_measured_again():
    """The first full refresh was slow because nothing was warm yet."""
    draw = random.Random(1)
    found = played(always(1_000.0), lambda n: 2_500.0 if n < 2 else 300.0, 400, draw)
    assert sum(found[300:]) > 85


def test_one_slow_refresh_changes_nothing():
    draw = random.Random(1)
    found = played(always(1_000.0), lambda n: 30_000.0 if n == 50 else 300.0, 100, draw)
    assert sum(found[51:71]) >= 17


def test_a_stale_sample_is_looked_at_again_even_if_few_refreshes_came_since():
    known = having(full(100), delta(5_000, 400), full(100, 5_000))
    assert chosen(known, 5_000, now=10).is_full
    again = chosen(known, 5_000, now=2 * STALE_SECONDS)
    assert (again.is_full, again.reason) == (
        False,
        "differential tried again after 1 full refresh of such windows",
    )


def test_a_small_advantage_does_not_make_it_change_sides():
    assert not chosen(having(full(1_000), delta(10, 1_000 * (ADVANTAGE - 0.05))), 10).is_full
