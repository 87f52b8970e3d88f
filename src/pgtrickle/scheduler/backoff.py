"""How long a failing stream table waits before it is tried again."""

from __future__ import annotations

from datetime import timedelta

FIRST_DELAY = timedelta(seconds=1)
LONGEST_DELAY = timedelta(minutes=5)

# enough doublings to pass the longest delay, few enough never to overflow
_MOST_DOUBLINGS = 16


def retry_delay(consecutive_errors: int) -> timedelta:
    """1 s after the first failure, twice as long after each further one, 5 min at most."""
    if consecutive_errors <= 0:
        return timedelta(0)
    factor = 1 << min(consecutive_errors - 1, _MOST_DOUBLINGS)
    return min(FIRST_DELAY * factor, LONGEST_DELAY)
