"""How much a stream table matters: the tier says how much later than asked it may be refreshed."""

from __future__ import annotations

from enum import Enum


class Tier(Enum):
    """HOT keeps to its schedule, FROZEN is refreshed only when somebody asks."""

    HOT = "hot"
    WARM = "warm"
    COLD = "cold"
    FROZEN = "frozen"

    @property
    def factor(self) -> int:
        """By how much intervals are longer than asked for."""
        return _FACTORS[self]


_FACTORS = {Tier.HOT: 1, Tier.WARM: 2, Tier.COLD: 10, Tier.FROZEN: 1}
