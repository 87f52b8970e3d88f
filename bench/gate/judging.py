"""Whether a ratio is still what it was: noise is measured again, a loss stays one.

Every ratio is a cost divided by a yardstick of the same run, so that less is better on any machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from statistics import median
from typing import Final

TOLERANCE: Final = 0.25
"""So much worse than the baseline a ratio may be."""
REPEATS: Final = 3
"""So often a ratio that is worse is measured again before it counts."""


class Verdict(Enum):
    """What became of a ratio."""

    HELD = "held"
    LOST = "lost"
    GAINED = "gained"
    NEW = "new"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Judged:
    """One ratio: as it was, as it was measured now, once or more often, and the verdict."""

    what: str
    baseline: float | None
    measured: tuple[float, ...]
    verdict: Verdict

    @property
    def now(self) -> float | None:
        """The median of what was measured."""
        return median(self.measured) if self.measured else None

    @property
    def change(self) -> float | None:
        """How much more it is than the baseline, as a fraction of it."""
        return self.now / self.baseline - 1 if self.now is not None and self.baseline else None


def judged(what: str, baseline: float | None, measure: Callable[[], float]) -> Judged:
    """Measure a ratio; if it is worse than the baseline allows, again, until the median is not."""
    measured: tuple[float, ...] = (measure(),)
    if baseline is None:
        return Judged(what, None, measured, Verdict.NEW)
    while _is_worse(baseline, measured) and len(measured) <= REPEATS:
        measured = (*measured, measure())
    return Judged(what, baseline, measured, _verdict(baseline, measured))


def missing(baseline: Mapping[str, float], measured: Iterable[str]) -> list[Judged]:
    """What the baseline knows and nobody measures any more."""
    gone = sorted(baseline.keys() - set(measured))
    return [Judged(what, baseline[what], (), Verdict.MISSING) for what in gone]


def is_passed(found: Iterable[Judged]) -> bool:
    """Whether no ratio was lost."""
    return all(one.verdict is not Verdict.LOST for one in found)


def _verdict(baseline: float, measured: tuple[float, ...]) -> Verdict:
    if _is_worse(baseline, measured):
        return Verdict.LOST
    return Verdict.GAINED if median(measured) * (1 + TOLERANCE) < baseline else Verdict.HELD


def _is_worse(baseline: float, measured: tuple[float, ...]) -> bool:
    return median(measured) > baseline * (1 + TOLERANCE)
