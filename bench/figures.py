"""What a measurement returns: figures, each with its bar if it has one, and the samples behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median


@dataclass(frozen=True, slots=True)
class Bar:
    """What a figure must reach: at most, or at least, a limit."""

    limit: float
    is_ceiling: bool

    def is_met_by(self, value: float) -> bool:
        """Whether the value is on the right side."""
        return value <= self.limit if self.is_ceiling else value >= self.limit

    def __str__(self) -> str:
        return f"{'≤' if self.is_ceiling else '≥'} {self.limit:g}"


def at_most(limit: float) -> Bar:
    """A bar that the figure may not exceed."""
    return Bar(limit, is_ceiling=True)


def at_least(limit: float) -> Bar:
    """A bar that the figure must reach."""
    return Bar(limit, is_ceiling=False)


Samples = Mapping[str, Sequence[float]]
Details = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Grid:
    """Figures that only make sense side by side: one row for each of many subjects."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table. Without a value it was skipped, and `note` says why."""

    what: str
    value: float | None
    unit: str = "×"
    bar: Bar | None = None
    note: str = ""
    samples: Samples = field(default_factory=dict)
    details: Details = field(default_factory=dict)
    grids: tuple[Grid, ...] = ()

    @property
    def is_met(self) -> bool | None:
        """Whether the bar was reached; unknown where there is no bar, or no value."""
        return None if self.bar is None or self.value is None else self.bar.is_met_by(self.value)


def ratio(
    what: str,
    over: str,
    under: str,
    samples: Samples,
    bar: Bar | None,
    *,
    unit: str,
    details: Details | None = None,
) -> Figure:
    """The median of one side divided by the median of the other; the note tells both."""
    above, below = median(samples[over]), median(samples[under])
    note = f"{over} {above:,.4g} {unit}, {under} {below:,.4g} {unit}"
    return Figure(what, above / below, bar=bar, note=note, samples=samples, details=details or {})
