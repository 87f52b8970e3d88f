"""Cron moments: what a text means, and which moment follows a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgtrickle.model.errors import BadSchedule
from pgtrickle.scheduler.policy.cron import NICKNAMES, Cron, parse_cron

START = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)  # a Thursday


def moments(text: str, count: int = 3, start: datetime = START) -> list[str]:
    cron, found = parse_cron(text), []
    for _ in range(count):
        start = cron.moment_after(start)
        found.append(start.strftime("%a %Y-%m-%d %H:%M:%S"))
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("* * * * *", ["Thu 2026-01-01 12:01:00", "Thu 2026-01-01 12:02:00"]),
        ("*/20 * * * *", ["Thu 2026-01-01 12:20:00", "Thu 2026-01-01 12:40:00"]),
        ("5/20 * * * *", ["Thu 2026-01-01 12:05:00", "Thu 2026-01-01 12:25:00"]),
        ("0 9-17/4 * * *", ["Thu 2026-01-01 13:00:00", "Thu 2026-01-01 17:00:00"]),
        ("15,45 0 * * *", ["Fri 2026-01-02 00:15:00", "Fri 2026-01-02 00:45:00"]),
        ("0 0 * * mon", ["Mon 2026-01-05 00:00:00", "Mon 2026-01-12 00:00:00"]),
        ("0 0 * * 7", ["Sun 2026-01-04 00:00:00", "Sun 2026-01-11 00:00:00"]),
        (
            "0 0 * * FRI-SUN",
            ["Fri 2026-01-02 00:00:00", "Sat 2026-01-03 00:00:00", "Sun 2026-01-04 00:00:00"],
        ),
        ("0 0 13 * fri", ["Fri 2026-01-02 00:00:00", "Fri 2026-01-09 00:00:00", "Tue 2026-01-13 00:00:00"]),
        ("0 0 */2 * fri", ["Fri 2026-01-09 00:00:00", "Fri 2026-01-23 00:00:00"]),
        ("0 0 29 feb *", ["Tue 2028-02-29 00:00:00", "Sun 2032-02-29 00:00:00"]),
        ("0 0 31 * *", ["Sat 2026-01-31 00:00:00", "Tue 2026-03-31 00:00:00"]),
        ("*/30 * * * * *", ["Thu 2026-01-01 12:00:30", "Thu 2026-01-01 12:01:00"]),
        ("10 30 8 * jan-mar,dec *", ["Fri 2026-01-02 08:30:10", "Sat 2026-01-03 08:30:10"]),
        ("@hourly", ["Thu 2026-01-01 13:00:00", "Thu 2026-01-01 14:00:00"]),
        ("@Daily", ["Fri 2026-01-02 00:00:00", "Sat 2026-01-03 00:00:00"]),
        ("@weekly", ["Sun 2026-01-04 00:00:00", "Sun 2026-01-11 00:00:00"]),
        ("@monthly", ["Sun 2026-02-01 00:00:00", "Sun 2026-03-01 00:00:00"]),
        ("@annually", ["Fri 2027-01-01 00:00:00", "Sat 2028-01-01 00:00:00"]),
    ],
)
def test_the_moments_of_a_schedule(text: str, expected: list[str]) -> None:
    assert moments(text, len(expected)) == expected


def test_moments_are_in_utc_whatever_the_zone_of_the_time() -> None:
    east = START.astimezone(timezone(timedelta(hours=9)))
    assert parse_cron("0 13 * * *").moment_after(east) == START + timedelta(hours=1)


def test_the_rarest_schedule_is_found() -> None:
    # 29 February on a Sunday, which 2100 leaves out
    assert moments("0 0 29 2 */7", 1, datetime(2088, 3, 1, tzinfo=UTC)) == ["Sun 2128-02-29 00:00:00"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("61 * * * *", "the minute '61' is not between 0 and 59"),
        ("* 24 * * *", "the hour '24' is not between 0 and 23"),
        ("* * 0 * *", "the day of the month '0' is not between 1 and 31"),
        ("* * * 13 *", "the month '13' is not between 1 and 12"),
        ("* * * * 8", "the day of the week '8' is not between 0 and 7"),
        ("60 * * * * *", "the second '60' is not between 0 and 59"),
        ("* * * foo *", "the month 'foo' cannot be read"),
        ("mon * * * *", "the minute 'mon' cannot be read"),
        ("1,,2 * * * *", "the minute '' cannot be read"),
        ("1-2-3 * * * *", "the minute '1-2-3' cannot be read"),
        ("9-5 * * * *", "the minute '9-5' ends before it begins"),
        ("*/0 * * * *", "the minute '*/0' has a step of zero"),
        ("٣ * * * *", "the minute '٣' cannot be read"),
        ("0 0 31 2 *", "never occurs: no such month has a day 31"),
        ("0 0 31 apr,jun *", "never occurs: no such month has a day 31"),
        ("@often", "there is no @often"),
    ],
)
def test_a_wrong_field_is_named(text: str, says: str) -> None:
    with pytest.raises(BadSchedule) as refused:
        parse_cron(text)
    assert says in refused.value.message
    assert repr(text) in refused.value.message
    assert refused.value.hint


def test_a_weekday_makes_a_day_that_no_month_has_harmless() -> None:
    assert moments("0 0 31 2 mon", 1) == ["Mon 2026-02-02 00:00:00"]


values = {
    "second": (0, 59),
    "minute": (0, 59),
    "hour": (0, 23),
    "day": (1, 28),
    "month": (1, 12),
    "week": (0, 7),
}


@st.composite
def crons(draw: st.DrawFn) -> Cron:
    fields = []
    for low, high in values.values():
        one = st.integers(low, high)
        span = st.tuples(one, one).map(lambda ends: f"{min(ends)}-{max(ends)}")
        step = st.integers(1, 30).map(lambda n: f"*/{n}")
        fields.append(draw(st.one_of(st.just("*"), one.map(str), span, step)))
    return parse_cron(" ".join(fields))


times = st.datetimes(datetime(2020, 1, 1), datetime(2060, 1, 1)).map(lambda time: time.replace(tzinfo=UTC))


@given(crons(), times, times)
def test_no_moment_is_skipped(cron: Cron, one: datetime, other: datetime) -> None:
    """The next moment of a later time is never earlier, and each moment is found from just before it."""
    earlier, later = sorted((one, other))
    moment = cron.moment_after(earlier)
    assert moment > earlier
    assert cron.moment_after(later) >= moment
    assert cron.moment_after(moment - timedelta(microseconds=1)) == moment
    assert later >= moment or cron.moment_after(later) == moment


@given(crons(), times)
def test_a_moment_has_the_fields_that_were_asked_for(cron: Cron, time: datetime) -> None:
    moment = cron.moment_after(time)
    assert moment.second in cron.seconds
    assert moment.minute in cron.minutes
    assert moment.hour in cron.hours
    assert moment.month in cron.months
    is_day, is_weekday = moment.day in cron.days, moment.isoweekday() % 7 in cron.weekdays
    assert (is_day or is_weekday) if cron.either_day else (is_day and is_weekday)


@pytest.mark.parametrize("nickname", NICKNAMES)
def test_a_nickname_keeps_its_name(nickname: str) -> None:
    assert str(parse_cron(nickname.upper())) == nickname
