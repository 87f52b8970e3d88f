"""An outage is told once when it begins and once when it is over, also if the database comes and goes."""

from __future__ import annotations

from pgtrickle.scheduler.service.outages import STEADY_SECONDS, Outage


def test_the_first_end_is_told_at_once():
    outage = Outage()
    assert outage.end(0.0) is None
    assert outage.begin(1.0)
    assert not outage.begin(2.0)
    assert outage.is_on
    assert outage.end(4.0) == 3.0
    assert outage.end(4.1) is None
    assert not outage.is_on


def test_a_database_that_comes_and_goes_is_told_twice_until_it_is_steady():
    outage, told = Outage(), list[tuple[str, float]]()
    for second in range(60):
        if outage.begin(float(second)):
            told.append(("lost", second))
        if (lasted := outage.end(second + 0.5)) is not None:
            told.append(("back", lasted))
    assert told == [("lost", 0), ("back", 0.5), ("lost", 1)]
    assert outage.end(61.0) is None
    assert outage.end(59.5 + STEADY_SECONDS) == 58.5, "until the connection that held"


def test_an_outage_long_after_another_is_a_new_one():
    outage = Outage()
    outage.begin(0.0)
    outage.end(1.0)
    later = 1.0 + STEADY_SECONDS
    assert outage.begin(later)
    assert outage.end(later + 2.0) == 2.0
