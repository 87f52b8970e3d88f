"""Cron schedules in UTC: parsed from text, and the moment that follows a time.

Five fields (minute, hour, day of the month, month, day of the week), or six with the second first,
as Quartz, Spring, robfig/cron and croner have it. Each is `*`, a value, a range `a-b` or a list of
those, with a step after a slash; months and weekdays also by their English names, Sunday is 0 or 7.
Where both kinds of day are restricted, either is enough; one that begins with `*` is not a restriction.
pgtrickle_internal.cron_field in catalog/sql/functions/cron.sql refuses the same texts when a stream table is
defined.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

from pgtrickle.model.errors import BadSchedule

NICKNAMES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
HINT: Final = (
    "a cron schedule is: minute hour day month weekday, in UTC, such as '*/5 8-17 * * mon-fri'; "
    "of six fields the first is the second; or @hourly, @daily, @weekly, @monthly, @yearly"
)
# 29 February on a given weekday comes back after at most forty years
_YEARS: Final = 41
_LONGEST_MONTHS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_ATOM: Final = re.compile(r"(?:\*|([0-9]{1,2}|[a-z]{3})(?:-([0-9]{1,2}|[a-z]{3}))?)(?:/([0-9]{1,2}))?")


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    low: int
    high: int
    words: tuple[str, ...] = ()


_FIELDS: Final = (
    _Field("second", 0, 59),
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of the month", 1, 31),
    _Field(
        "month",
        1,
        12,
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
    ),
    _Field("day of the week", 0, 7, ("sun", "mon", "tue", "wed", "thu", "fri", "sat")),
)


@dataclass(frozen=True, slots=True)
class Cron:
    """Refreshed at fixed moments; one refresh makes up for all that were missed."""

    text: str
    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: tuple[int, ...]
    weekdays: frozenset[int]
    either_day: bool

    def __str__(self) -> str:
        return self.text

    def moment_after(self, time: datetime) -> datetime:
        """The first moment of the schedule that is later than `time`."""
        start = time.astimezone(UTC).replace(microsecond=0) + timedelta(seconds=1)
        for day in self._days_from(start.date()):
            earliest = (start.hour, start.minute, start.second) if day == start.date() else (0, 0, 0)
            found = self._time_from(*earliest)
            if found is not None:
                return datetime(day.year, day.month, day.day, *found, tzinfo=UTC)
        raise AssertionError(f"{self.text} never comes, and should have been refused")

    def _days_from(self, first: date) -> Iterator[date]:
        for year in range(first.year, first.year + _YEARS):
            for month in self.months:
                if (year, month) < (first.year, first.month):
                    continue
                earliest = first.day if (year, month) == (first.year, first.month) else 1
                for day in range(earliest, monthrange(year, month)[1] + 1):
                    if self._has_day(date(year, month, day)):
                        yield date(year, month, day)

    def _has_day(self, day: date) -> bool:
        is_day, is_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return is_day or is_weekday if self.either_day else is_day and is_weekday

    def _time_from(self, hour: int, minute: int, second: int) -> tuple[int, int, int] | None:
        for at_hour in self.hours[bisect_left(self.hours, hour) :]:
            if at_hour > hour:
                return at_hour, self.minutes[0], self.seconds[0]
            for at_minute in self.minutes[bisect_left(self.minutes, minute) :]:
                if at_minute > minute:
                    return at_hour, at_minute, self.seconds[0]
                later = self.seconds[bisect_left(self.seconds, second) :]
                if later:
                    return at_hour, at_minute, later[0]
        return None


def looks_like_cron(text: str) -> bool:
    """Whether the text is meant to be cron."""
    return text.startswith("@") or len(text.split()) in (5, 6)


def parse_cron(text: str) -> Cron:
    """Parse a cron schedule; raises if a field is wrong or if it never fires."""
    canonical = " ".join(text.lower().split())
    if canonical.startswith("@") and canonical not in NICKNAMES:
        raise BadSchedule(f"{text!r} is not a schedule: there is no {canonical}", hint=HINT)
    parts = NICKNAMES.get(canonical, canonical).split()
    if len(parts) == 5:
        parts = ["0", *parts]
    if len(parts) != len(_FIELDS):
        raise BadSchedule(f"{text!r} is not a schedule: it has {len(parts)} fields", hint=HINT)
    second, minute, hour, day, month, weekday = (
        _values(field, part, text) for field, part in zip(_FIELDS, parts, strict=True)
    )
    has_every = parts[3].startswith("*"), parts[5].startswith("*")
    if has_every == (False, True) and not any(min(day) <= _LONGEST_MONTHS[m - 1] for m in month):
        raise BadSchedule(
            f"{text!r} never occurs: no such month has a day {min(day)}",
            hint="name a day that the month has; instead of its last day, use the first day of the next",
        )
    return Cron(
        canonical,
        tuple(sorted(second)),
        tuple(sorted(minute)),
        tuple(sorted(hour)),
        frozenset(day),
        tuple(sorted(month)),
        frozenset(number % 7 for number in weekday),
        either_day=not any(has_every),
    )


def _values(field: _Field, part: str, text: str) -> set[int]:
    return {value for atom in part.split(",") for value in _range(field, atom, text)}


def _range(field: _Field, atom: str, text: str) -> range:
    match = _ATOM.fullmatch(atom)
    if match is None:
        raise _wrong(field, atom, text, "cannot be read")
    first, last, step = match.groups()
    low = field.low if first is None else _value(field, first, atom, text)
    if last is not None:
        high = _value(field, last, atom, text)
        # a week may also end with its Sunday: fri-sun
        if field.words[:1] == ("sun",) and high == 0 < low:
            high = 7
    else:
        high = low if first is not None and step is None else field.high
    if high < low:
        raise _wrong(field, atom, text, "ends before it begins")
    if step is not None and int(step) == 0:
        raise _wrong(field, atom, text, "has a step of zero")
    return range(low, high + 1, int(step or 1))


def _value(field: _Field, word: str, atom: str, text: str) -> int:
    if word in field.words:
        return field.words.index(word) + field.low
    if not word.isdecimal():
        raise _wrong(field, atom, text, "cannot be read")
    if not field.low <= int(word) <= field.high:
        raise _wrong(field, atom, text, f"is not between {field.low} and {field.high}")
    return int(word)


def _wrong(field: _Field, atom: str, text: str, what: str) -> BadSchedule:
    return BadSchedule(f"{text!r} is not a schedule: the {field.name} {atom!r} {what}", hint=HINT)
