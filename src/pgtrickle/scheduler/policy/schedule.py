"""Schedules of stream tables: parsed from text and printed back."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from pgtrickle.model.errors import BadSchedule
from pgtrickle.scheduler.policy.cron import Cron, looks_like_cron, parse_cron

SHORTEST = timedelta(milliseconds=100)
LONGEST = timedelta(days=3652.5)

_MICROSECONDS = {
    "w": 604_800_000_000,
    "d": 86_400_000_000,
    "h": 3_600_000_000,
    "m": 60_000_000,
    "s": 1_000_000,
    "ms": 1_000,
}
# nine digits keep every sum of parts far inside what Decimal and timedelta hold exactly
_PART = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)(ms|[smhdw])")
_DURATION = re.compile(rf"(?:{_PART.pattern})+")
_SECONDS = re.compile(r"[0-9]{1,9}")
_EXAMPLES = (
    "use an interval such as 500ms, 1s, 5m, 2h, 1d, 1w or 1h30m (a bare number is seconds), "
    "cron such as '*/5 * * * *' or '@hourly', 'calculated' or 'manual'"
)


@dataclass(frozen=True, slots=True)
class Manual:
    """Refreshed only on request."""

    def __str__(self) -> str:
        return "manual"


@dataclass(frozen=True, slots=True)
class Calculated:
    """Refreshed when a source has changed: at once, or as often as its readers need if that is known."""

    interval: timedelta | None = None

    def __str__(self) -> str:
        return "calculated"


@dataclass(frozen=True, slots=True)
class Every:
    """Refreshed when this much time has passed since the last refresh and there is work."""

    interval: timedelta

    def __str__(self) -> str:
        left = self.interval // timedelta(microseconds=1)
        parts: list[str] = []
        for unit, size in _MICROSECONDS.items():
            count, left = divmod(left, size)
            if unit == "ms" and left:
                parts.append(f"{count}.{left:03}".rstrip("0") + unit)
            elif count:
                parts.append(f"{count}{unit}")
        return "".join(parts)


Schedule = Manual | Calculated | Every | Cron


def parse_schedule(text: str | None) -> Schedule:
    """Parse a schedule; None means manual."""
    if text is None:
        return Manual()
    given = text.strip().lower()
    if given == "manual":
        return Manual()
    if given == "calculated":
        return Calculated()
    if looks_like_cron(given):
        return parse_cron(text)
    return _every(given, text)


def _every(given: str, text: str) -> Every:
    if _SECONDS.fullmatch(given):
        given += "s"
    if not _DURATION.fullmatch(given):
        raise BadSchedule(f"{text!r} is not a schedule", hint=_EXAMPLES)
    microseconds = sum(Decimal(count) * _MICROSECONDS[unit] for count, unit in _PART.findall(given))
    if not _in_microseconds(SHORTEST) <= microseconds <= _in_microseconds(LONGEST):
        raise BadSchedule(
            f"the interval {text!r} is not between {Every(SHORTEST)} and ten years", hint=_EXAMPLES
        )
    return Every(timedelta(microseconds=round(microseconds)))


def _in_microseconds(interval: timedelta) -> int:
    return interval // timedelta(microseconds=1)
