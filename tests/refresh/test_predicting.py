"""The cost model chooses what was measured to be faster, and nothing old pins its choice."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from pgtrickle.refresh.decide.cost_model import (
    CLAMP,
    FOLLOW,
    LEAST_SAMPLES,
    RECENT,
    STALE_SECONDS,
    TRY_AGAIN_AFTER,
    CostLimits,
    Experience,
    RefreshSample,
    Strategy,
    choice,
    delta_time,
    full_time,
    may_try_full,
)

LIMITS = CostLimits()
SEEDS = range(60)


def delta(rows: int, milliseconds: float, at: float = 0.0) -> RefreshSample:
    return RefreshSample(Strategy.DELTA, rows, milliseconds, at)


def load(milliseconds: float, rows: int = 0, at: float = 0.0, *, is_new_start: bool = False) -> RefreshSample:
    return RefreshSample(Strategy.LOAD, rows, milliseconds, at, is_new_start)


def having(*samples: RefreshSample) -> Experience:
    known = Experience()
    for number, sample in enumerate(samples):
        known = known.after(replace(sample, at=sample.at or float(number)))
    return known


def measured(rows: int, milliseconds: float, count: int = RECENT) -> list[RefreshSample]:
    """Refreshes of one size, a little apart from each other."""
    return [delta(rows + n % 3, milliseconds * (1 + 0.01 * (n % 9))) for n in range(count)]


def test_full_is_chosen_where_it_was_measured_to_be_faster():
    known = having(load(300, is_new_start=True), *measured(5_000, 1_000))
    chosen = choice(known, 5_000, 100, LIMITS)
    assert (chosen.is_full, chosen.reason) == (
        True,
        "full expected faster: 300 ms against 1,040 ms (median of 9)",
    )


def test_differential_is_chosen_where_it_was_measured_to_be_faster():
    known = having(load(3_000, is_new_start=True), *measured(5_000, 1_600))
    chosen = choice(known, 5_000, 100, LIMITS)
    assert (chosen.is_full, chosen.reason) == (
        False,
        "differential expected faster: 1,664 ms against 3,000 ms (median of 9)",
    )


def test_full_must_be_faster_by_more_than_a_little():
    known = having(load(900, is_new_start=True), *measured(5_000, 1_000, 5))
    assert not choice(known, 5_000, 100, LIMITS).is_full


@pytest.mark.parametrize("factor", [0.01, 0.1, 1.0, 10.0, 1000.0])
def test_a_prediction_stays_within_its_bounds(factor):
    known = having(load(1_000, is_new_start=True), *measured(5_000, 1_000 * factor, 5))
    reason = choice(known, 5_000, 100, replace(LIMITS, worth_milliseconds=0)).reason
    times = [float(word.replace(",", "")) for word in reason.split() if word.replace(",", "").isdigit()]
    expected = times[1] if "full expected" in reason else times[0]
    assert CLAMP[0] * 1_000 <= expected <= CLAMP[1] * 1_000


@pytest.mark.parametrize(
    "samples",
    [
        [],
        measured(5_000, 1_000, LEAST_SAMPLES - 1),
        # times that do not vary were not measured
        [delta(5_000, 1_000) for _ in range(RECENT)],
        # sizes that do not vary tell nothing of another size
        [delta(100, 1_000 + n) for n in range(RECENT)],
        # nor do tiny ones of a huge one
        [delta(n, 1_000 + 100 * n) for n in range(RECENT)],
    ],
)
def test_degenerate_samples_tell_nothing(samples):
    known = having(load(10, is_new_start=True), *samples)
    assert delta_time(known, 5_000) is None
    assert choice(known, 5_000, 100, LIMITS) == FOLLOW


def test_without_a_measured_full_time_there_is_no_choice():
    assert choice(having(*measured(5_000, 1_000)), 5_000, 100, LIMITS) == FOLLOW


def test_a_short_refresh_is_not_worth_a_choice():
    known = having(load(10, is_new_start=True), *measured(50, 150))
    assert choice(known, 50, 100, LIMITS) == FOLLOW


def test_other_sizes_lead_to_this_one_by_a_line():
    sizes = (10, 100, 500, 1_000, 2_000, 4_000)
    known = having(load(500, is_new_start=True), *(delta(n, 50 + 0.5 * n) for n in sizes))
    assert delta_time(known, 8_000) == pytest.approx(4_050, rel=0.01)
    assert delta_time(known, 40_000) is None
    assert "by 6 other windows" in choice(known, 8_000, 100, LIMITS).reason


def test_many_small_windows_do_not_make_a_large_one_forgotten():
    known = having(load(500, is_new_start=True), *measured(50_000, 3_000), *measured(10, 60, 500))
    assert choice(known, 50_000, 600, LIMITS).is_full
    assert not choice(known, 10, 600, LIMITS).is_full


def test_a_new_start_makes_earlier_windows_forgotten():
    known = having(*measured(5_000, 1_000), load(10, is_new_start=True))
    assert choice(known, 5_000, 100, LIMITS) == FOLLOW


def test_full_may_be_tried_for_a_large_window_of_which_nothing_is_known():
    known = having(load(500, is_new_start=True), *measured(10, 60))
    assert may_try_full(known, LIMITS.many_rows, LIMITS)
    assert not may_try_full(known, LIMITS.many_rows - 1, LIMITS)
    assert not may_try_full(having(*measured(20_000, 60)), 20_000, LIMITS)


def test_full_is_not_tried_again_where_following_was_faster():
    known = having(load(500, is_new_start=True), load(500, 20_000))
    assert may_try_full(known, 20_000, LIMITS)
    assert not may_try_full(known.after(delta(20_000, 400)), 20_000, LIMITS)
    assert may_try_full(known.after(delta(20_000, 4_000)), 20_000, LIMITS)


def test_trying_full_does_not_keep_us_from_ever_following():
    known = having(load(500, is_new_start=True), *(load(500, 20_000) for _ in range(TRY_AGAIN_AFTER)))
    assert not may_try_full(known, 20_000, LIMITS)


def test_after_a_spike_the_prediction_is_back_within_five_samples():
    """A sawtooth: every so often a refresh takes up to a hundred times as long."""
    for seed in SEEDS:
        draw = random.Random(seed)
        usual, period = draw.uniform(200, 2_000), draw.randint(5, 12)
        known, since = having(load(usual, is_new_start=True)), 0
        for number in range(100):
            is_spike = number > 0 and number % period == 0
            factor = draw.uniform(5, 100) if is_spike else draw.uniform(0.9, 1.1)
            known = known.after(delta(draw.randint(900, 1_100), usual * factor, float(number)))
            since = 0 if is_spike else since + 1
            expected = delta_time(known, 1_000)
            if expected is not None and since >= 5:
                assert expected == pytest.approx(usual, rel=0.15)


def test_five_samples_of_a_new_level_are_enough():
    for seed in SEEDS:
        draw = random.Random(seed)
        before, after = draw.uniform(200, 2_000), draw.uniform(200, 20_000)
        known = having(load(1_000, is_new_start=True))
        for number in range(25):
            level = before if number < 20 else after
            known = known.after(delta(1_000 + number % 7, level * draw.uniform(0.9, 1.1), float(number)))
        assert delta_time(known, 1_000) == pytest.approx(after, rel=0.15)


def always(milliseconds: float) -> Callable[[int], float]:
    return lambda number: milliseconds


def played(
    delta_costs: Callable[[int], float],
    full_costs: Callable[[int], float],
    rounds: int,
    draw: random.Random,
    *,
    seconds: float = 1.0,
) -> list[bool]:
    """Let the model choose again and again, and measure only what it chose; whether each was full."""
    known, chosen = having(load(full_costs(0), is_new_start=True)), []
    for number in range(rounds):
        is_full = choice(known, 1_000, number * seconds, LIMITS).is_full
        took = (full_costs if is_full else delta_costs)(number) * draw.uniform(0.9, 1.1)
        sample = RefreshSample(Strategy.LOAD if is_full else Strategy.DELTA, 1_000, took, number * seconds)
        known = known.after(sample)
        chosen.append(is_full)
    return chosen


def test_what_is_cheaper_is_what_is_done():
    for seed in SEEDS:
        draw = random.Random(seed)
        slow, fast = draw.uniform(2, 20) * 400, 400.0
        is_full_cheaper = draw.random() < 0.5
        costs = (slow, fast) if is_full_cheaper else (fast, slow)
        chosen = played(always(costs[0]), always(costs[1]), 400, draw)
        assert sum(one is is_full_cheaper for one in chosen[LEAST_SAMPLES:]) >= 0.85 * len(chosen)


def test_trying_again_costs_little():
    for seed in SEEDS:
        draw = random.Random(seed)
        costs = (draw.uniform(2, 50) * 400, 400.0)
        chosen = played(always(costs[0]), always(costs[1]), 600, draw)[LEAST_SAMPLES:]
        wasted = sum(costs[0] for is_full in chosen if not is_full)
        assert wasted <= 1.5 / TRY_AGAIN_AFTER * costs[1] * len(chosen)


def test_a_choice_that_became_wrong_is_undone():
    """Differential was slow and becomes fast: a try finds out, and the old samples count no more."""
    for seed in SEEDS:
        draw = random.Random(seed)
        chosen = played(lambda n: 2_000.0 if n < 50 else 250.0, lambda n: 500.0, 150, draw)
        assert sum(chosen[LEAST_SAMPLES:50]) > 35
        # full is tried again then, once
        assert sum(chosen[110:]) <= 1


def test_a_full_time_that_became_wrong_is_measured_again():
    """The first load was slow because nothing was warm yet."""
    draw = random.Random(1)
    chosen = played(lambda n: 1_000.0, lambda n: 2_500.0 if n == 0 else 300.0, 400, draw)
    assert sum(chosen[300:]) > 85


def test_a_spike_of_full_is_outvoted():
    draw = random.Random(1)
    chosen = played(lambda n: 1_000.0, lambda n: 30_000.0 if n == 100 else 300.0, 140, draw)
    assert sum(chosen[101:121]) >= 15


def test_a_stale_sample_is_looked_at_again_even_if_few_refreshes_came_since():
    known = having(load(100, is_new_start=True), *measured(5_000, 4_000))
    known = known.after(load(100, 5_000, 20.0))
    assert choice(known, 5_000, 100, LIMITS).is_full
    late = choice(known, 5_000, 100 + STALE_SECONDS, LIMITS)
    assert (late.is_full, late.reason) == (
        False,
        "differential tried again after 1 full refreshes of such windows",
    )


def test_what_takes_very_long_is_tried_less_often():
    known = having(load(1_000, is_new_start=True), *measured(5_000, 60_000))
    known = known.after(load(1_000, 5_000, 20.0))
    assert choice(known, 5_000, 100 + STALE_SECONDS, LIMITS).is_full
    assert not choice(known, 5_000, 7_000, LIMITS).is_full


def test_the_full_time_is_the_median_of_the_last_three():
    assert full_time(having(load(9_000, is_new_start=True), load(100), load(5_000), load(110))) == 110


def test_what_postgresql_recomputed_tells_nothing_of_spark():
    known = having(load(100, is_new_start=True))
    assert known.after(RefreshSample(Strategy.RECOMPUTE, 10, 5.0, 1.0)) == known
