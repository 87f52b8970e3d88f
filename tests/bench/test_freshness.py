"""Freshness counts from the commit of a change to that of the first refresh that has seen it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from bench.freshness import Change, Shown, waits

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def test_a_refresh_that_began_before_the_change_does_not_show_it():
    shown = {"total": [Shown(at(0.9), at(1.5)), Shown(at(1.6), at(2.0))]}
    assert waits([Change("orders", at(1))], {"orders": ["total"]}, shown) == [1.0]


def test_every_reader_of_the_source_counts():
    shown = {"total": [Shown(at(2), at(3))], "count": [Shown(at(2), at(5))], "other": []}
    assert waits([Change("orders", at(1))], {"orders": ["total", "count"]}, shown) == [2.0, 4.0]


def test_a_change_that_was_never_shown_is_a_mistake():
    with pytest.raises(AssertionError, match="never shown"):
        waits([Change("orders", at(1))], {"orders": ["total"]}, {"total": [Shown(at(0), at(2))]})
