"""A limit of time for what might never end, such as the plan of a large query."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager


class TooLong(Exception):
    """It took longer than it may."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise `TooLong` here when time is up; a timer that was running before goes on afterwards."""

    def stop(*_: object) -> None:
        raise TooLong(f"not done within {seconds:.0f} s")

    begun = time.monotonic()
    handler = signal.signal(signal.SIGALRM, stop)
    left, interval = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if left:
            signal.setitimer(signal.ITIMER_REAL, max(left - (time.monotonic() - begun), 0.001), interval)
