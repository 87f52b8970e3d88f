"""A tick with a thousand stream tables, and with ten thousand, when nothing has changed."""

from __future__ import annotations

import time
from statistics import median

from bench.crowd import Crowd, crowd
from bench.figures import Figure, at_most
from bench.idling import ticking
from bench.stage import Place, Stage
from bench.timing import milliseconds, percentile
from pgtrickle.model.stream_table import Action
from pgtrickle.scheduler.service.loop import POLL_SECONDS, Loop, RefreshEvent
from tests.fixtures.waiting import eventually

LIMITS = (20.0, 100.0)
WARMING = 5
LONGEST = 120.0
"""Seconds after which no further tick is measured."""


def many_ticks(stage: Stage) -> list[Figure]:
    """The same database with the first number of stream tables, then with the second."""
    figures, made = [], 0
    with stage.database("many_ticks") as place:
        for tables, limit in zip(stage.sizes.many_tables, LIMITS, strict=True):
            started = time.perf_counter()
            group = crowd(place, tables, made)
            each = (time.perf_counter() - started) / (tables - made) * 1000
            made = tables
            took = idle_ticks(place, stage.sizes.ticks)
            _check(group)
            note = (
                f"95 % below {percentile(took, 95):.3g} ms, longest {max(took):.3g} ms;"
                f" created in {each:.3g} ms each"
            )
            what = f"idle tick, {tables:,} stream tables"
            samples = {"milliseconds": took}
            figures.append(Figure(what, median(took), "ms", at_most(limit), note, samples))
    return figures


def idle_ticks(place: Place, count: int) -> list[float]:
    """Milliseconds of ticks at the sidecar's own pace."""
    took: list[float] = []
    with ticking(place) as tick:
        started = time.perf_counter()
        for number in range(WARMING + count):
            if took and time.perf_counter() - started > LONGEST:
                break
            spent = milliseconds(tick)
            if number >= WARMING:
                took.append(spent)
            time.sleep(POLL_SECONDS)
    return took


def _check(group: Crowd) -> None:
    """One change of one source refreshes whoever follows it, and nobody else."""
    source, events = group.sources[-1], list[RefreshEvent]()
    with Loop(group.place.trickle.engine, events.append).dispatcher() as dispatcher:
        dispatcher.tick()
        assert dispatcher.is_idle(), "something was due before anything had changed"
        # of a kind that every one of them keeps
        group.change([source], row=8)

        def is_done() -> bool:
            dispatcher.tick()
            return dispatcher.is_idle() and len(events) >= len(group.following(source))

        eventually(is_done, seconds=60)
    outcomes = [event.outcome for event in events if event.outcome]
    told = {outcome.name.name for outcome in outcomes if outcome.action is Action.DIFFERENTIAL}
    failed = [event.error for event in events if event.error]
    assert told == group.following(source), f"refreshed: {sorted(told)}; failed: {failed}"
    group.place.trickle.verify(f"kept_{source}_9")
