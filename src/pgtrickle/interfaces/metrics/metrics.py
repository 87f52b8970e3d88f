"""The metrics of one sidecar: counted from its events, read from what it knows, rendered for Prometheus.

A scrape asks neither the database nor the JVM. It reads the counters, what the scheduler has in memory, and
the latest round of what is gathered in the background.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from pgtrickle.interfaces.metrics.event_counters import EventCounters
from pgtrickle.interfaces.metrics.gathering import Gathering
from pgtrickle.model.errors import BadSetting
from pgtrickle.model.settings import METRICS_MAX_TABLES

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric as MetricFamily

    from pgtrickle.commands.run import Loop, RefreshEvent
    from pgtrickle.refresh.engine import Engine

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
CHOICE_SECONDS: Final = 60.0
"""How often it is chosen again which stream tables have series of their own."""


class Metrics:
    """Pass `note` to the sidecar as a callback for events, `watch` its loop, and serve what `render` returns.

    At most `max_tables` stream tables and as many sources have series of their own; the rest is `other`.
    """

    def __init__(
        self,
        engine: Engine,
        max_tables: int = METRICS_MAX_TABLES.default,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if find_spec("prometheus_client") is None:
            raise BadSetting(
                "metrics need a package that is not installed", hint="pip install 'pgtrickle[http]'"
            )
        from prometheus_client import CollectorRegistry, ProcessCollector

        self.engine, self.max_tables, self.clock = engine, max_tables, clock
        self.counters = EventCounters(max_tables)
        self.gathering = Gathering(engine, clock)
        self.loop: Loop | None = None
        self._chosen_at = clock()
        self._registry = CollectorRegistry()
        self._registry.register(self)
        # the process itself: CPU, memory, open files
        ProcessCollector(registry=self._registry)

    def watch(self, loop: Loop) -> None:
        """Show what this loop knows from now on."""
        self.loop = loop

    def limit_tables(self, max_tables: int) -> None:
        """Give series of their own to at most this many stream tables from now on."""
        self.max_tables = max_tables
        self.counters.limit_tables(max_tables)

    def note(self, event: RefreshEvent) -> None:
        """Count an event of the sidecar."""
        self.counters.note(event)

    def render(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        from prometheus_client import generate_latest

        return generate_latest(self._registry)

    def collect(self) -> Iterable[MetricFamily]:
        """All metrics as values, for the registry."""
        from pgtrickle.interfaces.metrics.collecting import collect

        dispatcher = self.loop.current if self.loop is not None else None
        if dispatcher is not None and self.clock() - self._chosen_at >= CHOICE_SECONDS:
            self._chosen_at = self.clock()
            self.counters.choose_tables({table.name for table in dispatcher.definitions.tables.values()})
        return collect(self)

    def describe(self) -> Iterable[MetricFamily]:
        """Nothing: the registry would otherwise collect everything when it is made."""
        return ()

    def close(self) -> None:
        """Gather nothing more."""
        self.gathering.close()
