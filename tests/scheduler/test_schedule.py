"""Schedules are read from text and printed back."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgtrickle.model.errors import BadSchedule
from pgtrickle.scheduler.policy.schedule import (
    LONGEST,
    SHORTEST,
    Calculated,
    Every,
    Manual,
    Schedule,
    parse_schedule,
)

schedules: st.SearchStrategy[Schedule] = st.one_of(
    st.just(Manual()),
    st.just(Calculated()),
    st.timedeltas(min_value=SHORTEST, max_value=LONGEST).map(Every),
    st.sampled_from(["*/5 8-17 * * mon-fri", "@hourly", "30 0 0 1,15 * 7"]).map(parse_schedule),
)


@pytest.mark.parametrize(
    ("text", "seconds", "canonical"),
    [
        ("500ms", 0.5, "500ms"),
        ("100ms", 0.1, "100ms"),
        ("1s", 1, "1s"),
        ("5m", 300, "5m"),
        ("2h", 7200, "2h"),
        ("1d", 86400, "1d"),
        ("1w", 604800, "1w"),
        ("1h30m", 5400, "1h30m"),
        ("90m", 5400, "1h30m"),
        ("1.5h", 5400, "1h30m"),
        ("30", 30, "30s"),
        ("60", 60, "1m"),
        (" 1H30M ", 5400, "1h30m"),
        ("1s250ms", 1.25, "1s250ms"),
        ("100.5ms", 0.1005, "100.5ms"),
    ],
)
def test_an_interval_is_read_and_has_one_canonical_text(text: str, seconds: float, canonical: str) -> None:
    schedule = parse_schedule(text)
    assert schedule == Every(timedelta(seconds=seconds))
    assert str(schedule) == canonical


@pytest.mark.parametrize("text", ["calculated", "CALCULATED", " Calculated "])
def test_calculated_may_be_written_in_any_case(text: str) -> None:
    assert parse_schedule(text) == Calculated()


@pytest.mark.parametrize("text", [None, "manual", "Manual"])
def test_no_schedule_means_manual(text: str | None) -> None:
    assert parse_schedule(text) == Manual()


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "soon",
        "1x",
        "1 s",
        "s",
        "1s-",
        "-1s",
        "-5",
        "+5",
        "1e3",
        "1.s",
        ".5s",
        "1h 30m",
        "٣s",
        "1s\x00",
    ],
)
def test_anything_else_is_refused_with_the_text_and_examples(text: str) -> None:
    with pytest.raises(BadSchedule) as refused:
        parse_schedule(text)
    assert repr(text) in refused.value.message
    assert "1h30m" in (refused.value.hint or "")


@pytest.mark.parametrize(
    "text", ["0", "0s", "0ms", "99ms", "99.999ms", "999999999", "999999999w", "9" * 40 + "s"]
)
def test_an_interval_out_of_bounds_is_refused(text: str) -> None:
    with pytest.raises(BadSchedule, match=text):
        parse_schedule(text)


@given(schedules)
def test_what_is_printed_is_read_back_as_the_same_schedule(schedule: Schedule) -> None:
    assert parse_schedule(str(schedule)) == schedule


@given(st.text() | st.text(alphabet="0123456789.smhdw @*/-,"))
def test_any_text_is_a_schedule_or_refused_as_a_bad_one(text: str) -> None:
    schedule: Schedule = Manual()
    with suppress(BadSchedule):
        schedule = parse_schedule(text)
    assert parse_schedule(str(schedule)) == schedule
