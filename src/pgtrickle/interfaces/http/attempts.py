"""Limits how fast tokens can be guessed."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

BURST: Final = 20
SECONDS_PER_ATTEMPT: Final = 3.0
MOST_ADDRESSES: Final = 1000


class Attempts:
    """Wrong tokens by the address of the client: some at once, then one every few seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._spent: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def is_allowed(self, address: str) -> bool:
        """Whether a token from this address is looked at."""
        return self._left(address) >= 1

    def note_failure(self, address: str) -> None:
        """Count a wrong token."""
        self._spent[address] = (self._left(address) - 1, self._clock())
        self._spent.move_to_end(address)
        while len(self._spent) > MOST_ADDRESSES:
            self._spent.popitem(last=False)

    def _left(self, address: str) -> float:
        left, at = self._spent.get(address, (float(BURST), 0.0))
        return min(float(BURST), left + (self._clock() - at) / SECONDS_PER_ATTEMPT)
