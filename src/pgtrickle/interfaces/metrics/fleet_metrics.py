"""The metrics of several databases: those of each, with a label for the database."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pgtrickle.interfaces.metrics.metrics import Metrics
from pgtrickle.scheduler.service.loop import LoopState

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric as MetricFamily

    from pgtrickle.capture.attached.broker import Broker
    from pgtrickle.commands.run import RefreshEvent
    from pgtrickle.scheduler.service.fleet import Member

LABEL = "database"


class FleetMetrics:
    """`add` and `remove` databases, `note` their events, and serve what `render` returns.

    Together they have as many series of single stream tables as one database may have.
    """

    def __init__(self, max_tables: int) -> None:
        from prometheus_client import CollectorRegistry, ProcessCollector

        self._max_tables = max_tables
        self.broker: Broker | None = None
        self._lock = threading.Lock()
        self._metrics: dict[Member, Metrics] = {}
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def add(self, member: Member) -> None:
        """Another database."""
        metrics = Metrics(member.engine, self._max_tables)
        metrics.watch(member.loop)
        with self._lock:
            self._metrics[member] = metrics
            self._divide()

    def remove(self, member: Member) -> None:
        """A database that is not served any more: its series end."""
        with self._lock:
            metrics = self._metrics.pop(member, None)
            self._divide()
        if metrics is not None:
            metrics.close()

    def note(self, member: Member, event: RefreshEvent) -> None:
        """Count an event."""
        with self._lock:
            metrics = self._metrics.get(member)
        if metrics is not None:
            metrics.note(event)

    def render(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        from prometheus_client import generate_latest

        return generate_latest(self._registry)

    def collect(self) -> Iterable[MetricFamily]:
        """The families of all databases, merged."""
        with self._lock:
            present = list(self._metrics.items())
        merged: dict[str, MetricFamily] = {}
        for member, metrics in present:
            metrics.gathering.is_paused = member.loop.state is not LoopState.SERVING
            for family in metrics.collect():
                known = merged.setdefault(family.name, family)
                samples = [
                    sample._replace(labels={**sample.labels, LABEL: member.database.name})
                    for sample in family.samples
                ]
                known.samples = samples if known is family else [*known.samples, *samples]
        return [*merged.values(), *self._of_broker()]

    def _of_broker(self) -> Iterable[MetricFamily]:
        """What the broker has read, and saved. It belongs to the process, not to a database."""
        if self.broker is None:
            return
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        counters = self.broker.counters
        windows = CounterMetricFamily(
            "pgtrickle_broker_windows",
            "Windows of changes: read by the broker, and taken from it by others, which saved a read.",
            labels=("outcome",),
        )
        windows.add_metric(("read",), counters.read)
        windows.add_metric(("shared",), counters.shared)
        yield windows
        read = CounterMetricFamily(
            "pgtrickle_broker_read_bytes", "Bytes of windows that the broker has read."
        )
        read.add_metric((), counters.bytes_read)
        yield read
        pairs = GaugeMetricFamily(
            "pgtrickle_broker_pairs", "Pairs of a database and a table that it follows through the broker."
        )
        pairs.add_metric((), self.broker.pairs)
        yield pairs

    def describe(self) -> Iterable[MetricFamily]:
        """Nothing: the registry would otherwise collect everything when it is made."""
        return ()

    def close(self) -> None:
        """Gather nothing more."""
        with self._lock:
            present = list(self._metrics.values())
        for metrics in present:
            metrics.close()

    def _divide(self) -> None:
        """Divide the series of single stream tables among the databases."""
        share = max(1, self._max_tables // max(1, len(self._metrics)))
        for metrics in self._metrics.values():
            metrics.limit_tables(share)
