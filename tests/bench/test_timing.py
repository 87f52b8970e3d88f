"""Timing of a refresh's steps survives that a step is taken otherwise."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from bench import timing
from bench.timing import percentile, phased


def test_a_step_whose_function_is_gone_is_left_out():
    steps = {"pgtrickle.refresh.story.no_such_function": "gone", "no_such_module.function": "gone too"}
    with patch.object(timing, "_STEPS", steps), phased() as spent:
        pass
    assert list(spent) == ["between"]


@pytest.mark.parametrize("target", timing._STEPS)
def test_each_step_names_a_function_that_exists(target):
    assert timing._found(target) is not None


def test_a_percentile_is_one_of_the_samples():
    assert percentile([5, 1, 4, 2, 3], 95) == 5
    assert percentile(range(1, 101), 95) == 95
    assert percentile([7.0], 50) == 7.0
