"""A failing table waits longer and longer, up to a limit."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from pgtrickle.scheduler.policy.backoff import LONGEST_DELAY, longest_delay, retry_delay, retry_delays


def test_the_delay_doubles_with_each_failure_up_to_five_minutes() -> None:
    seconds = [longest_delay(errors).total_seconds() for errors in range(1, 12)]
    assert seconds == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]


def test_without_a_failure_there_is_no_delay() -> None:
    assert retry_delay(0) == timedelta(0)


@given(st.integers(min_value=0, max_value=10**12))
def test_one_more_failure_never_shortens_the_delay(errors: int) -> None:
    assert longest_delay(errors) <= longest_delay(errors + 1) <= LONGEST_DELAY


@given(st.integers(1, 100), st.floats(0, 1, exclude_max=True))
def test_chance_takes_at_most_half_of_the_delay(errors: int, drawn: float) -> None:
    assert longest_delay(errors) / 2 <= retry_delay(errors, lambda: drawn) <= longest_delay(errors)


def test_two_that_fail_together_are_not_tried_again_together() -> None:
    assert len({retry_delay(5) for _ in range(20)}) > 1


def test_there_is_one_delay_less_than_failures_that_suspend() -> None:
    assert [delay.total_seconds() for delay in retry_delays(4, lambda: 0.5)] == [0.75, 1.5, 3]
    assert retry_delays(1) == []
