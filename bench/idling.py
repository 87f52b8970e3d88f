"""A sidecar that looks when it is told to, and finds nothing to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench.stage import Place
from pgtrickle.pipeline.session import Spark
from pgtrickle.refresh.engine import Engine
from pgtrickle.scheduler.service.loop import Loop, RefreshEvent


@contextmanager
def ticking(place: Place) -> Iterator[Callable[[], None]]:
    """One tick for each call, by an engine that fails if anything is due, or if it is asked for Spark."""
    engine = Engine(place.dsn, no_spark)
    try:
        with Loop(engine, _no_refresh).dispatcher() as dispatcher:
            yield dispatcher.tick
    finally:
        engine.close()


def _no_refresh(event: RefreshEvent) -> None:
    raise AssertionError(f"{event.name} was refreshed although nothing has changed: {event.error}")


def no_spark() -> Spark:
    """What an engine gets that needs no Spark."""
    raise AssertionError("an idle tick has asked for Spark")
