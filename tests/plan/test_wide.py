"""Compiling a query over a wide table takes time in proportion to its width."""

from __future__ import annotations

import sys
import time
from types import FrameType

import pytest

from tests.plan.wide import QUERIES, build

NARROW, WIDE = 24, 96
PROPORTION = WIDE / NARROW


def calls(name: str, columns: int) -> int:
    """How many functions of Python are called: the same number each time, however busy the machine is."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        build(name, columns)
    finally:
        sys.setprofile(before)
    return count


def seconds(name: str, columns: int) -> float:
    """The least time of the processor among several tries."""
    took = []
    for _ in range(3):
        started = time.thread_time()
        build(name, columns)
        took.append(time.thread_time() - started)
    return min(took)


@pytest.mark.parametrize("name", QUERIES)
def test_four_times_as_many_columns_are_four_times_the_work(name):
    # the first time, what is kept for ever is made
    build(name, 5)
    assert calls(name, WIDE) <= 1.3 * PROPORTION * calls(name, NARROW)


@pytest.mark.parametrize("name", QUERIES)
def test_four_times_as_many_columns_take_far_less_than_sixteen_times_as_long(name):
    build(name, 5)
    assert seconds(name, WIDE) <= 2.25 * PROPORTION * seconds(name, NARROW)


@pytest.mark.parametrize("name", QUERIES)
def test_the_text_of_a_program_grows_with_the_width(name):
    assert build(name, WIDE) <= 1.3 * PROPORTION * build(name, NARROW)
