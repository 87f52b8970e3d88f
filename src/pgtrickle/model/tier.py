"""The tier of a stream table: how much its refresh interval is stretched."""

from __future__ import annotations

from enum import Enum


class Tier(Enum):
    """HOT follows its schedule; FROZEN is refreshed only on request."""

    HOT = "hot"
    WARM = "warm"
    COLD = "cold"
    FROZEN = "frozen"

    @property
    def factor(self) -> int:
        """The factor by which intervals are longer than scheduled."""
        return _FACTORS[self]


_FACTORS = {Tier.HOT: 1, Tier.WARM: 2, Tier.COLD: 10, Tier.FROZEN: 1}
