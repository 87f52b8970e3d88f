"""The gate finds a loss, and takes noise for what it is."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import chain, repeat

import pytest

from bench.gate.baseline import read, write
from bench.gate.judging import REPEATS, Judged, Verdict, is_passed, judged, missing
from bench.machine import Machine


def measuring(*ratios: float) -> Callable[[], float]:
    """These one after the other, and the last one for ever."""
    given = chain(ratios, repeat(ratios[-1]))
    return lambda: next(given)


def test_a_ratio_that_stays_a_third_worse_is_lost():
    found = judged("chain", 3.0, measuring(4.0, 4.1, 3.9, 4.0))
    assert found.verdict is Verdict.LOST
    assert found.change == pytest.approx(1 / 3)
    assert not is_passed([found])


def test_a_ratio_a_fifth_worse_is_held_and_measured_once():
    found = judged("chain", 3.0, measuring(3.6))
    assert found == Judged("chain", 3.0, (3.6,), Verdict.HELD)


@pytest.mark.parametrize("noisy", [(9.0, 3.0, 3.1), (4.0, 3.2), (5.0, 3.1, 3.0), (4.2, 3.9, 3.0, 3.0)])
def test_noise_that_does_not_come_back_is_no_loss(noisy: Sequence[float]):
    found = judged("chain", 3.0, measuring(*noisy))
    assert found.verdict is Verdict.HELD
    assert is_passed([found])


def test_one_lucky_repeat_does_not_hide_a_loss():
    assert judged("chain", 3.0, measuring(5.0, 4.0, 3.0, 4.5)).verdict is Verdict.LOST


def test_a_loss_is_measured_again_three_times_and_no_more():
    assert len(judged("chain", 3.0, measuring(6.0)).measured) == 1 + REPEATS


def test_exactly_a_quarter_worse_is_still_held():
    assert judged("chain", 4.0, measuring(5.0)).verdict is Verdict.HELD


def test_a_ratio_that_fell_by_a_third_is_told_as_gained():
    found = judged("chain", 3.0, measuring(2.0))
    assert found.verdict is Verdict.GAINED
    assert is_passed([found])


def test_a_ratio_without_a_baseline_is_new_and_passes():
    found = judged("chain", None, measuring(9.0))
    assert found == Judged("chain", None, (9.0,), Verdict.NEW)
    assert found.change is None
    assert is_passed([found])


def test_a_baseline_that_nobody_measures_is_told_as_missing():
    found = missing({"chain": 3.0, "diamond": 2.0}, ["diamond"])
    assert found == [Judged("chain", 3.0, (), Verdict.MISSING)]
    assert found[0].now is None
    assert is_passed(found)


def test_one_loss_among_many_fails_the_gate():
    held, lost = judged("a", 1.0, measuring(1.0)), judged("b", 1.0, measuring(2.0))
    assert not is_passed([held, lost])


def test_a_baseline_is_read_as_it_was_written(tmp_path):
    machine: Machine = dict.fromkeys(
        ("processor", "cores", "memory_gigabytes", "load_at_start", "postgresql", "spark", "python"), "some"
    )
    path = tmp_path / "baseline.json"
    write(path, {"chain": [3.2, 2.9, 3.0]}, machine, "2026-01-31")
    assert read(path) == {"chain": 3.0}
    stored = json.loads(path.read_text())
    assert stored["date"] == "2026-01-31"
    assert (stored["ratios"]["chain"]["lowest"], stored["ratios"]["chain"]["highest"]) == (2.9, 3.2)


def test_without_a_baseline_every_ratio_is_new(tmp_path):
    assert read(tmp_path / "none.json") == {}
