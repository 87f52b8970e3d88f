"""A failing table waits longer and longer, up to a limit."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from pgtrickle.scheduler.backoff import LONGEST_DELAY, retry_delay


def test_the_delay_doubles_with_each_failure_up_to_five_minutes() -> None:
    seconds = [retry_delay(errors).total_seconds() for errors in range(1, 12)]
    assert seconds == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]


def test_without_a_failure_there_is_no_delay() -> None:
    assert retry_delay(0) == timedelta(0)


@given(st.integers(min_value=0, max_value=10**12))
def test_one_more_failure_never_shortens_the_delay(errors: int) -> None:
    assert retry_delay(errors) <= retry_delay(errors + 1) <= LONGEST_DELAY
