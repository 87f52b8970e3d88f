"""One scrape: the values of all metrics as families of `prometheus_client`."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from typing import TYPE_CHECKING

from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    SummaryMetricFamily,
)
from prometheus_client.metrics_core import Metric as MetricFamily

from pgtrickle import __version__
from pgtrickle.interfaces.metrics import definitions as all_metrics
from pgtrickle.interfaces.metrics.definitions import Kind, Metric
from pgtrickle.interfaces.metrics.event_counters import EventCounts, Histogram
from pgtrickle.interfaces.metrics.table_labels import OTHER
from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import RelationId, Status
from pgtrickle.scheduler.policy.freshness import Freshness

if TYPE_CHECKING:
    from pgtrickle.interfaces.metrics.metrics import Metrics
    from pgtrickle.refresh.engine import Engine
    from pgtrickle.scheduler.service.dispatcher import Dispatcher


def collect(metrics: Metrics) -> Iterator[MetricFamily]:
    """All metrics, as of now."""
    version = (__version__, platform.python_version())
    yield _series(all_metrics.BUILD_INFO, [(version, 1)])
    yield from _counted(metrics.counters.counts())
    yield from _about_engine(metrics.engine)
    loop = metrics.loop
    if loop is not None:
        spark = metrics.engine.supply.current is not None
        database = loop.current is not None and not loop.outage.is_on
        yield _family(all_metrics.UP, {"database": database, "spark": spark})
        ticks = loop.vitals.values()
        yield SummaryMetricFamily(
            all_metrics.TICKS.name,
            all_metrics.TICKS.help,
            count_value=int(ticks.get("ticks", 0)),
            sum_value=ticks["all_ticks_ms"] / 1000,
        )
    lags: dict[RelationId, float] = {}
    if loop is not None and loop.current is not None:
        stale = loop.current.freshness()
        lags = _lags(stale)
        yield from _about_scheduler(loop.current)
        yield from _about_tables(loop.current, stale, metrics.counters.shown(), metrics.max_tables)
    yield from _gathered(metrics, lags)


def _counted(counts: EventCounts) -> Iterator[MetricFamily]:
    yield _family(all_metrics.OUTAGES, {"database": 0, "spark": 0} | counts.outages)
    yield _series(all_metrics.REFRESHES, counts.refreshes.items())
    yield _family(all_metrics.FAILURES, counts.failures)
    yield _series(all_metrics.ROWS, counts.rows.items())
    yield _family(all_metrics.TABLE_TIME, counts.seconds)
    yield _histograms(all_metrics.DURATION, counts.durations)
    yield _histograms(all_metrics.PHASES, counts.phases)


def _about_engine(engine: Engine) -> Iterator[MetricFamily]:
    caches, pool = engine.cache_counters(), engine.pool.usage()
    found = {"memory": "hits", "host": "host_hits", "catalog": "catalog_hits", "compiled": "compiles"}
    yield _family(all_metrics.LOOKUPS, {where: caches[name] for where, name in found.items()})
    entries = {"queries": "entries", "plans": "spark_plans", "sources": "kept_reads"}
    yield _family(all_metrics.CACHED, {cache: caches[name] for cache, name in entries.items()})
    paths = {"in_place": caches["programs_in_place"], "job": caches["programs_as_jobs"]}
    yield _family(all_metrics.PROGRAMS, paths)
    yield _number(all_metrics.SPARK_DEATHS, caches["spark_deaths"])
    states = {"in_use": pool.in_use, "idle": pool.idle, "lent": pool.lent}
    yield _family(all_metrics.CONNECTIONS, states)
    yield _number(all_metrics.MOST_CONNECTIONS, pool.most)
    yield _number(all_metrics.MEMORY, engine.memory.held)
    yield _number(all_metrics.MEMORY_LIMIT, engine.memory.limit())


def _about_scheduler(dispatcher: Dispatcher) -> Iterator[MetricFamily]:
    work, statuses = dispatcher.workload(), dispatcher.statuses()
    tables = dispatcher.definitions.tables.values()
    yield _number(all_metrics.WORKERS, work["workers"])
    yield _number(all_metrics.BUSY, work["busy"])
    yield _number(all_metrics.QUEUED, work["queued"])
    yield _number(all_metrics.SINCE_TICK, dispatcher.seconds_since_poll())
    yield _family(all_metrics.TABLES, {status.value.lower(): statuses[status] for status in Status})
    yield _number(all_metrics.TABLES_BEHIND, dispatcher.behind())
    yield _number(all_metrics.TABLES_GATED, sum(table.is_gated for table in tables))


def _about_tables(
    dispatcher: Dispatcher, stale: Sequence[Freshness], usual: frozenset[RelationName], limit: int
) -> Iterator[MetricFamily]:
    """Tables that are late come first, then those with series anyway; `other` is the worst of the rest."""
    yield _number(all_metrics.TABLES_LATE, sum(one.is_late for one in stale))
    worst = nlargest(limit, stale, key=_lateness)
    ages = {one.name: one.staleness for one in worst}
    known = {one.name: one.seconds for one in dispatcher.allowances().values()}
    for name in sorted(usual):
        if len(ages) >= limit:
            break
        if name in known:
            ages.setdefault(name, 0.0)
    rest = (one.staleness for one in stale if one.name not in ages)
    values = {str(name): age for name, age in ages.items()}
    if len(known) > len(ages):
        values[OTHER] = max(rest, default=0.0)
    yield _family(all_metrics.STALENESS, values)
    allowed = {str(name): seconds for name in ages if (seconds := known.get(name)) is not None}
    yield _family(all_metrics.SCHEDULE, allowed)


def _gathered(metrics: Metrics, lags: Mapping[RelationId, float]) -> Iterator[MetricFamily]:
    """What the background has found; nothing of it before its first round."""
    found = metrics.gathering.latest()
    if found is None:
        return
    yield _number(all_metrics.GATHERED, metrics.clock() - found.at)
    if found.buffers is not None:
        shown, rest = found.buffers[: metrics.max_tables], found.buffers[metrics.max_tables :]
        sizes = {one.name: float(one.bytes) for one in shown}
        ages = {one.name: lags.get(one.source, 0.0) for one in shown}
        if rest:
            sizes[OTHER] = sum(one.bytes for one in rest)
            ages[OTHER] = max(lags.get(one.source, 0.0) for one in rest)
        yield _family(all_metrics.BUFFERS, sizes)
        yield _family(all_metrics.CAPTURE_LAG, ages)
    if found.heap is not None:
        heap = found.heap
        areas = {"used": heap.used, "committed": heap.committed, "max": heap.most}
        yield _family(all_metrics.HEAP, areas)
    if found.resident is not None:
        yield _number(all_metrics.RESIDENT, found.resident)


def _lags(stale: Sequence[Freshness]) -> dict[RelationId, float]:
    """The age of the oldest change of each source that a reader has not applied."""
    lags: dict[RelationId, float] = {}
    for one in stale:
        for source in one.sources:
            if one.staleness > lags.get(source, -1.0):
                lags[source] = one.staleness
    return lags


def _lateness(one: Freshness) -> tuple[float, float]:
    """How late a table is: by its schedule first, tables without one last."""
    return (one.staleness / one.allowed if one.allowed else 0.0), one.staleness


def _number(metric: Metric, value: float) -> MetricFamily:
    """A metric without labels."""
    return _series(metric, [((), value)])


def _family(metric: Metric, values: Mapping[str, float]) -> MetricFamily:
    """A metric with one label."""
    return _series(metric, (((label,), value) for label, value in values.items()))


def _series(metric: Metric, values: Iterable[tuple[tuple[str, ...], float]]) -> MetricFamily:
    """A metric with any labels."""
    kind = CounterMetricFamily if metric.kind is Kind.COUNTER else GaugeMetricFamily
    family = kind(metric.name, metric.help, labels=metric.labels)
    for labels, value in values:
        family.add_metric(labels, value)
    return family


def _histograms(metric: Metric, values: Mapping[str, Histogram]) -> MetricFamily:
    family = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
    for label, histogram in values.items():
        family.add_metric([label], list(histogram.buckets()), histogram.sum)
    return family
