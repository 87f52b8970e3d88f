"""The cost model: predicts which strategy is faster for the next refresh.

There is no state and no clock here: the experience with a stream table is a value, and the choice follows
from it. What was measured counts; what was not is estimated, and tried if the estimate says that it may be
faster. Measured times are medians of the last few, so one slow refresh changes nothing and a few new ones
change everything. The strategy that is not chosen is tried again from time to time, less often the more it
costs. So an old sample cannot fix the choice for ever, and trying costs at most a tenth of the total time. A
refresh that takes several times as long as the other strategy is stopped, so a wrong guess costs little.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from math import log
from statistics import median_low
from typing import Final

RECENT: Final = 5
"""How many samples count: three new ones are more than half of them."""
RECENT_FULL: Final = 3
SIMILAR: Final = 3.0
"""Windows that differ by no more than this factor cost about the same."""
ADVANTAGE: Final = 1.1
"""A full refresh must be expected to be faster by this factor."""
DOUBT: Final = 30.0
"""An estimate may be wrong by this factor: what was not measured yet is tried if it may be faster by it."""
CLOSE: Final = 2.0
"""A single measurement may be wrong by this factor."""
STOP: Final = 2.0
"""A refresh that has taken this many times as long as the other strategy takes is stopped."""
STOP_MILLISECONDS: Final = 50.0
"""It may take this much longer than that: stopping it and starting again is not free."""
COLD_MILLISECONDS: Final = 1_000.0
"""The same for a program that runs for the first time in a process: Spark has to plan it."""
COLD_EXTRA: Final = 250.0
"""How much longer a program is expected to take the first time."""
TRY_SOON_AFTER: Final = 3
"""The same if it was measured only once and is not much slower."""
TRY_AGAIN_AFTER: Final = 10
"""After this many refreshes, times the factor by which it is slower, the other strategy is tried again."""
STALE_SECONDS: Final = 600.0
"""A differential sample older than this is measured again, if that costs at most a hundredth of the time."""
STALE_COST: Final = 100.0
WITHOUT_STATE: Final = 0.75
"""The share of a full refresh that is left if the state is not computed, until that was measured."""


class Strategy(Enum):
    """How rows are computed: from the change, from all rows by Spark, or from all rows by PostgreSQL.

    PostgreSQL evaluates the query alone, or computes the state beside the rows as well.
    """

    DELTA = "delta"
    LOAD = "load"
    RECOMPUTE = "recompute"
    WITH_STATE = "with_state"


@dataclass(frozen=True, slots=True)
class RefreshSample:
    """One refresh: its change rows, its milliseconds, and when it ended, in seconds."""

    strategy: Strategy
    rows: int
    milliseconds: float
    at: float
    is_new_start: bool = False
    """Whether everything was loaded again, so that earlier windows predict nothing any more."""
    changed: str = ""
    """Which sources had changed; empty if that is not known, as in the history."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What the statistics of PostgreSQL say about a window: milliseconds of each strategy.

    `fixed_ms` is the part of a differential refresh that does not depend on the size of the window, and
    `is_worth_it` whether the sources are so large that the choice matters.
    """

    full_ms: float
    delta_ms: float
    fixed_ms: float = 0.0
    is_worth_it: bool = True

    def scaled(self, rows: int, other: int) -> float:
        """How many times as long a differential refresh of `rows` takes as one of `other` rows."""
        per_row = max(self.delta_ms - self.fixed_ms, 0.0) / max(rows, 1)
        return self.delta_ms / max(self.fixed_ms + per_row * other, 0.1)


@dataclass(frozen=True, slots=True)
class Band:
    """The samples of windows of about one size, and how many full refreshes there were since the last."""

    deltas: tuple[RefreshSample, ...] = ()
    since_delta: int = 0


BandKey = tuple[str, int]
"""Which sources had changed, and the size class of the window."""


@dataclass(frozen=True, slots=True)
class Experience:
    """The measured refreshes of one stream table.

    They are kept by what had changed and by the size of their windows, so that many small windows do not
    displace a large one.
    """

    bands: Mapping[BandKey, Band] = field(default_factory=dict)
    fulls: tuple[RefreshSample, ...] = ()
    since_full: int = 0
    with_state: tuple[RefreshSample, ...] = ()
    """The full refreshes that computed the state too; `fulls` did not."""

    @property
    def full_count(self) -> int:
        """How many full refreshes the time of the next one is predicted from."""
        return len(self.fulls) or len(self.with_state)

    @property
    def was_full(self) -> bool:
        """Whether the last refresh was full."""
        return self.full_count > 0 and self.since_full == 0

    def after(self, sample: RefreshSample) -> Experience:
        """The experience with one more refresh."""
        key = (sample.changed, size_class(sample.rows))
        band = self.bands.get(key, Band())
        match sample.strategy:
            case Strategy.LOAD:
                if not sample.is_new_start:
                    return self
                return Experience(fulls=self.fulls, since_full=self.since_full, with_state=self.with_state)
            case Strategy.RECOMPUTE | Strategy.WITH_STATE:
                bands = {**self.bands, key: replace(band, since_delta=band.since_delta + 1)}
                if sample.strategy is Strategy.RECOMPUTE:
                    fulls = (*self.fulls, sample)[-RECENT_FULL:]
                    return replace(self, bands=bands, fulls=fulls, since_full=0)
                with_state = (*self.with_state, sample)[-RECENT_FULL:]
                return replace(self, bands=bands, with_state=with_state, since_full=0)
            case Strategy.DELTA:
                is_refuted = (
                    band.since_delta > 0 and self.full_count and sample.milliseconds < full_time(self)
                )
                # after a while of full refreshes, a fast one says that the slow ones are out of date
                kept = () if is_refuted else band.deltas
                followed = Band((*kept, sample)[-RECENT:])
                return replace(self, bands={**self.bands, key: followed}, since_full=self.since_full + 1)

    def band(self, changed: str, rows: int) -> Band:
        """The windows of this kind; those of the history are not told apart by what had changed."""
        return self._similar(changed, rows) or self._similar("", rows) or Band()

    def _similar(self, changed: str, rows: int) -> Band | None:
        """The windows of about this size with these changed sources; None if there were none."""
        size = size_class(rows)
        own = self.bands.get((changed, size))
        near = (self.bands.get((changed, size + step), Band()) for step in (-1, 0, 1))
        found = [sample for band in near for sample in band.deltas if _factor(sample.rows, rows) <= SIMILAR]
        if own is None and not found:
            return None
        latest = sorted(found, key=lambda sample: sample.at)[-RECENT:]
        return Band(tuple(latest), own.since_delta if own is not None else 0)

    def nearest(self, changed: str, rows: int) -> RefreshSample | None:
        """The last sample of those windows with the same changed sources with the nearest size."""
        found = [band.deltas[-1] for (kind, _), band in self.bands.items() if kind == changed and band.deltas]
        return min(found, key=lambda s: abs(log((s.rows + 1) / (rows + 1))), default=None)


@dataclass(frozen=True, slots=True)
class CostLimits:
    """When the model has an opinion at all."""

    worth_milliseconds: float = 15.0
    """A differential refresh that is this short is not worth a choice."""
    worth_rows: int = 2_000
    """Nor are sources that have fewer rows together."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Whether to compute all rows instead of following the change, and why; an empty reason is no opinion.

    After `stop_ms` milliseconds it is stopped, and replaced by the other strategy, which takes `other_ms`.
    """

    is_full: bool
    reason: str = ""
    stop_ms: float | None = None
    other_ms: float | None = None


FOLLOW: Final = Choice(is_full=False)


def is_settled(known: Experience, changed: str, rows: int, limits: CostLimits) -> bool:
    """Whether no estimate is needed: both strategies were measured, or the change is followed in no time."""
    deltas = known.band(changed, rows).deltas
    if not deltas:
        return False
    return known.full_count > 0 or _middle(deltas) < limits.worth_milliseconds


def choice(
    known: Experience,
    changed: str,
    rows: int,
    estimate: Estimate | None,
    now: float,
    limits: CostLimits,
    *,
    is_cold: bool = False,
) -> Choice:
    """The strategy for a window with this many change rows.

    The `estimate` may be left out where `is_settled`. `is_cold` says that the program has not run yet.
    """
    band = known.band(changed, rows)
    measured = _middle(band.deltas) if band.deltas else None
    if measured is not None and measured < limits.worth_milliseconds:
        return FOLLOW
    if estimate is not None and not estimate.is_worth_it:
        return FOLLOW
    if estimate is None and (measured is None or not known.full_count):
        return FOLLOW
    full = full_time(known) if known.full_count else estimate.full_ms if estimate is not None else 0.0
    stop = STOP * full + (COLD_MILLISECONDS if is_cold else STOP_MILLISECONDS)
    if measured is None:
        assert estimate is not None
        return _by_estimate(known, changed, rows, estimate, full, stop, is_cold=is_cold)
    if not known.full_count:
        return _first_full(measured, full, stop)
    return _by_measurement(known, band, measured, full, stop, now)


def _by_estimate(
    known: Experience,
    changed: str,
    rows: int,
    estimate: Estimate,
    full: float,
    stop: float,
    *,
    is_cold: bool,
) -> Choice:
    """Windows of this kind have not been followed yet."""
    near = known.nearest(changed, rows)
    expected = estimate.delta_ms
    if near is not None:
        expected = near.milliseconds * estimate.scaled(rows, near.rows)
    tried = known.band(changed, rows).since_delta
    how = f"measured {_times(known.full_count)}" if known.full_count else "by the planner's estimate"
    told = f"differential about {_ms(expected)}, full {_ms(full)} ({how})"
    # a full refresh was measured, and what is cheaper cannot be told without following such a window once
    if known.full_count and 0 < tried <= 2 and expected < DOUBT * full:
        return Choice(False, f"differential tried, expected: {told}", stop, full)
    if known.full_count and tried >= TRY_AGAIN_AFTER:
        return Choice(False, f"differential tried after {tried} full refreshes of such windows", stop, full)
    first = expected + (COLD_EXTRA if is_cold and near is None else 0.0)
    if first > ADVANTAGE * full:
        planned = "" if expected > ADVANTAGE * full else "; Spark has to plan the first differential refresh"
        return Choice(True, f"full expected faster: {told}{planned}")
    return Choice(False, f"differential expected faster: {told}", stop, full)


def _first_full(measured: float, full: float, stop: float) -> Choice:
    """Such windows have been followed, and a full refresh was not measured yet."""
    told = f"about {_ms(full)} by the planner's estimate, differential took {_ms(measured)}"
    if full < DOUBT * measured:
        return _full_try(f"full tried: {told}", measured)
    return Choice(False, f"differential expected faster: full {told}", stop, full)


def _by_measurement(
    known: Experience, band: Band, measured: float, full: float, stop: float, now: float
) -> Choice:
    """Both strategies were measured."""
    told = f"{_ms(full)} against {_ms(measured)}"
    if measured > ADVANTAGE * full:
        if _may_try_delta(band, measured / full, measured, now):
            return Choice(
                False,
                f"differential tried again after {_refreshes(band.since_delta, 'full')} of such windows",
                stop,
                full,
            )
        return Choice(True, f"full expected faster: {told} (measured {_times(len(band.deltas))})")
    if known.since_full >= TRY_AGAIN_AFTER * max(1.0, full / measured) ** 2:
        return _full_try(f"full tried again after {_refreshes(known.since_full, 'differential')}", measured)
    told = f"{_ms(measured)} against {_ms(full)}"
    return Choice(
        False, f"differential expected faster: {told} (measured {_times(len(band.deltas))})", stop, full
    )


def _full_try(reason: str, measured: float) -> Choice:
    """A full refresh that is stopped if following the change would have been much faster."""
    return Choice(True, reason, STOP * measured + STOP_MILLISECONDS, measured)


def full_time(known: Experience) -> float:
    """The milliseconds of a full refresh without its state; at least one must have been measured."""
    return _middle(known.fulls) if known.fulls else WITHOUT_STATE * _middle(known.with_state)


def delta_time(known: Experience, changed: str, rows: int) -> float | None:
    """The measured milliseconds of following a window of this kind; None if none was."""
    deltas = known.band(changed, rows).deltas
    return _middle(deltas) if deltas else None


def cost_lines(known: Experience) -> list[str]:
    """What was measured, for explain; nothing if there is nothing to compare."""
    if not known.full_count and not known.bands:
        return []
    lines = []
    if known.fulls:
        lines.append(f"  full: {_ms(_middle(known.fulls))} (measured {_times(len(known.fulls))})")
    if known.with_state:
        took = f"{_ms(_middle(known.with_state))} (measured {_times(len(known.with_state))})"
        lines.append(f"  full, with the state beside it: {took}")
    sizes: dict[int, list[RefreshSample]] = {}
    for (_, size), band in known.bands.items():
        sizes.setdefault(size, []).extend(band.deltas)
    for _, samples in sorted(sizes.items()):
        if samples:
            rows = f"{min(s.rows for s in samples):,} to {max(s.rows for s in samples):,} change rows"
            took = f"{_ms(_middle(tuple(samples)))} (measured {_times(len(samples))})"
            lines.append(f"  differential, {rows}: {took}")
    return ["", "measured refreshes, by which AUTO chooses:", *lines] if lines else []


def size_class(rows: int) -> int:
    """The number of a size class; windows of the next one are four times as large."""
    return rows.bit_length() // 2


def _factor(one: int, other: int) -> float:
    return (max(one, other) + 1) / (min(one, other) + 1)


def _middle(samples: tuple[RefreshSample, ...]) -> float:
    # of two, the faster one: other work on the machine only ever adds to a time
    return median_low(sample.milliseconds for sample in samples)


def _may_try_delta(band: Band, slower: float, measured: float, now: float) -> bool:
    is_unsure = len(band.deltas) == 1 and slower <= CLOSE
    if band.since_delta >= (TRY_SOON_AFTER if is_unsure else TRY_AGAIN_AFTER * max(1.0, slower)):
        return True
    age = now - max(sample.at for sample in band.deltas)
    return band.since_delta > 0 and age >= max(STALE_SECONDS, STALE_COST * measured / 1000)


def _refreshes(count: int, kind: str) -> str:
    return f"{count} {kind} {'refresh' if count == 1 else 'refreshes'}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _ms(value: float) -> str:
    return f"{value:,.0f} ms"
