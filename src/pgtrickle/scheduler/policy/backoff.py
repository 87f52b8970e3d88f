"""How long a failing stream table waits before the next attempt. Nothing else decides that."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from random import random
from typing import Final

FIRST_DELAY: Final = timedelta(seconds=1)
LONGEST_DELAY: Final = timedelta(minutes=5)

# enough doublings to pass the longest delay, few enough never to overflow
_MOST_DOUBLINGS: Final = 16


def longest_delay(consecutive_errors: int) -> timedelta:
    """1 s after the first failure, doubled after each further one, at most 5 min."""
    if consecutive_errors <= 0:
        return timedelta(0)
    factor = 1 << min(consecutive_errors - 1, _MOST_DOUBLINGS)
    return min(FIRST_DELAY * factor, LONGEST_DELAY)


def retry_delay(consecutive_errors: int, chance: Callable[[], float] = random) -> timedelta:
    """The delay with jitter, so that tables that failed together are not retried together.

    `chance` returns random numbers from 0 to 1.
    """
    return longest_delay(consecutive_errors) * (0.5 + chance() / 2)


def retry_delays(max_errors: int, chance: Callable[[], float] = random) -> list[timedelta]:
    """The delay after each failure that does not suspend the table yet: the first, the second, and so on."""
    return [retry_delay(errors, chance) for errors in range(1, max_errors)]
