"""The cost model: predicts from measured refreshes which strategy is faster for the next one.

There is no state and no clock here: the experience with a stream table is a value, and the choice follows
from it. Estimates are medians, so one slow refresh changes nothing, over few samples, so five new ones change
everything. The strategy that is not chosen is tried again from time to time, less often the more it costs. So
an old sample cannot fix the choice for ever, and trying costs at most a tenth of the total time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from statistics import median
from typing import Final

RECENT: Final = 9
"""How many differential samples count: five new ones are more than half of them."""
RECENT_FULL: Final = 3
RECENT_ON_LINE: Final = 3
LEAST_SAMPLES: Final = 5
SIMILAR: Final = 2.0
"""Windows that differ by no more than this factor cost about the same."""
REACH: Final = 4.0
"""How many times beyond its largest window a line through samples is extrapolated."""
CLAMP: Final = (0.5, 4.0)
"""The least and the most of a prediction, as multiples of the time of a full refresh."""
ADVANTAGE: Final = 1.25
"""A full refresh must be expected to be faster by this factor."""
TRY_AGAIN_AFTER: Final = 10
"""After this many refreshes, times the factor by which it is slower, the other strategy is tried again."""
STALE_SECONDS: Final = 600.0
"""A differential sample older than this is measured again, if that costs at most a hundredth of the time."""
STALE_COST: Final = 100.0


class Strategy(Enum):
    """How rows are computed: from the change, from all rows by the same program, or by PostgreSQL alone."""

    DELTA = "delta"
    LOAD = "load"
    RECOMPUTE = "recompute"


@dataclass(frozen=True, slots=True)
class RefreshSample:
    """One refresh: its change rows, its milliseconds, and when it ended, in seconds."""

    strategy: Strategy
    rows: int
    milliseconds: float
    at: float
    is_new_start: bool = False
    """Whether everything was loaded again, so that earlier windows predict nothing any more."""


@dataclass(frozen=True, slots=True)
class Band:
    """The samples of windows of about one size, and how many loads there were since the last delta."""

    deltas: tuple[RefreshSample, ...] = ()
    since_delta: int = 0


@dataclass(frozen=True, slots=True)
class Experience:
    """The measured refreshes of one stream table.

    They are kept by the size of their windows, so that many small windows do not displace a large one.
    """

    bands: Mapping[int, Band] = field(default_factory=dict)
    loads: tuple[RefreshSample, ...] = ()
    since_load: int = 0

    def after(self, sample: RefreshSample) -> Experience:
        """The experience with one more refresh."""
        number = _band(sample.rows)
        band = self.bands.get(number, Band())
        if sample.strategy is Strategy.LOAD:
            loads = (*self.loads, sample)[-RECENT_FULL:]
            if sample.is_new_start:
                return Experience(loads=loads)
            skipped = replace(band, since_delta=band.since_delta + 1)
            return Experience({**self.bands, number: skipped}, loads)
        if sample.strategy is Strategy.DELTA:
            bands = self._without_outdated(sample)
            kept = bands.get(number, Band()).deltas
            followed = Band((*kept, sample)[-RECENT:])
            return Experience({**bands, number: followed}, self.loads, self.since_load + 1)
        return self

    def band(self, rows: int) -> Band:
        """The windows of about this size."""
        return self.bands.get(_band(rows), Band())

    @property
    def deltas(self) -> tuple[RefreshSample, ...]:
        """All differential samples, smaller windows first."""
        return tuple(sample for _, band in sorted(self.bands.items()) for sample in band.deltas)

    def _without_outdated(self, sample: RefreshSample) -> Mapping[int, Band]:
        """The bands without those near this sample, if it contradicts what they predicted."""
        if self.loads and self.band(sample.rows).since_delta:
            full, expected = full_time(self), delta_time(self, sample.rows)
            if expected is not None and sample.milliseconds < full < expected:
                near = {_band(sample.rows) + step for step in (-1, 0, 1)}
                return {number: band for number, band in self.bands.items() if number not in near}
        return self.bands


@dataclass(frozen=True, slots=True)
class CostLimits:
    """When the model has an opinion at all."""

    settles_seconds: float = 60.0
    """How long after its creation a stream table is always refreshed differentially."""
    worth_milliseconds: float = 200.0
    """A refresh that should be shorter than this is not worth a choice."""
    many_rows: int = 10_000
    """The least rows of a window for which a full refresh is tried without a measured reason."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Whether to load all rows instead of following the change, and why; an empty reason is no opinion."""

    is_full: bool
    reason: str = ""


FOLLOW: Final = Choice(is_full=False)


def choice(known: Experience, rows: int, now: float, limits: CostLimits) -> Choice:
    """The strategy for a window with this many change rows."""
    if not known.loads:
        return FOLLOW
    expected = delta_time(known, rows)
    if expected is None or expected < limits.worth_milliseconds:
        return FOLLOW
    full = full_time(known)
    clamped = min(max(expected, CLAMP[0] * full), CLAMP[1] * full)
    basis = _basis(known, rows)
    if clamped > ADVANTAGE * full:
        if _may_try_delta(known, rows, expected, now):
            since = known.band(rows).since_delta
            return Choice(False, f"differential tried again after {since} full refreshes of such windows")
        return Choice(True, f"full expected faster: {_ms(full)} against {_ms(clamped)} ({basis})")
    if known.since_load >= TRY_AGAIN_AFTER * max(1.0, full / expected) ** 2:
        return Choice(True, f"full tried again after {known.since_load} differential refreshes")
    return Choice(False, f"differential expected faster: {_ms(clamped)} against {_ms(full)} ({basis})")


def may_try_full(known: Experience, rows: int, limits: CostLimits) -> bool:
    """Whether to try a full refresh for a large window that too few samples can predict.

    Not if the last window of its size was faster than a full refresh. Now and then the change is followed.
    """
    if rows < limits.many_rows or delta_time(known, rows) is not None:
        return False
    band = known.band(rows)
    if band.since_delta >= TRY_AGAIN_AFTER:
        return False
    is_fast = bool(band.deltas and known.loads) and band.deltas[-1].milliseconds <= full_time(known)
    return not is_fast


def full_time(known: Experience) -> float:
    """The milliseconds of a load of all rows; at least one must have been measured."""
    return median(sample.milliseconds for sample in known.loads)


def delta_time(known: Experience, rows: int) -> float | None:
    """The expected milliseconds for following this many change rows; None if the samples cannot tell."""
    similar = _similar(known, rows)
    if len(similar) >= LEAST_SAMPLES:
        # real measurements vary
        return median(similar) if _deviation(similar) > 0 else None
    return _on_the_line([s for band in known.bands.values() for s in band.deltas[-RECENT_ON_LINE:]], rows)


def _similar(known: Experience, rows: int) -> list[float]:
    """The times of the latest windows of about this size."""
    near = sorted((s for s in known.deltas if _factor(s.rows, rows) <= SIMILAR), key=lambda s: s.at)
    return [sample.milliseconds for sample in near[-RECENT:]]


def _on_the_line(samples: Sequence[RefreshSample], rows: int) -> float | None:
    """The value of the line through the samples, by the medians of its slopes and offsets."""
    if len(samples) < LEAST_SAMPLES:
        return None
    sizes = [sample.rows for sample in samples]
    if rows > REACH * max(sizes) or _factor(max(sizes), min(sizes)) <= SIMILAR:
        return None
    if _deviation(sizes) == 0 or _deviation([sample.milliseconds for sample in samples]) == 0:
        return None
    slopes = [
        (b.milliseconds - a.milliseconds) / (b.rows - a.rows)
        for i, a in enumerate(samples)
        for b in samples[i + 1 :]
        if a.rows != b.rows
    ]
    slope = max(median(slopes), 0.0)
    return max(median(s.milliseconds - slope * s.rows for s in samples) + slope * rows, 0.0)


def _may_try_delta(known: Experience, rows: int, expected: float, now: float) -> bool:
    band = known.band(rows)
    if band.since_delta >= TRY_AGAIN_AFTER * max(1.0, expected / full_time(known)):
        return True
    age = now - max(sample.at for sample in known.deltas)
    return band.since_delta > 0 and age >= max(STALE_SECONDS, STALE_COST * expected / 1000)


def _basis(known: Experience, rows: int) -> str:
    similar = len(_similar(known, rows))
    return f"median of {similar}" if similar >= LEAST_SAMPLES else f"by {len(known.deltas)} other windows"


def _band(rows: int) -> int:
    """The number of a size band; windows of the next band are four times as large."""
    return rows.bit_length() // 2


def _factor(one: int, other: int) -> float:
    return (max(one, other) + 1) / (min(one, other) + 1)


def _deviation(values: Sequence[float]) -> float:
    """The median of the distances from the median."""
    middle = median(values)
    return median(abs(value - middle) for value in values)


def _ms(value: float) -> str:
    return f"{value:,.0f} ms"
