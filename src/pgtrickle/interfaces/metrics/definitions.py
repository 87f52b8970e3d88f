"""Every metric: its name, kind, labels and meaning. The documentation and the tests read this table."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Kind(Enum):
    """What kind of values a metric has."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    SUMMARY = "summary"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. The series of a counter have its name with `_total`."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()

    @property
    def shown_name(self) -> str:
        """The name that people see and query."""
        return f"{self.name}_total" if self.kind is Kind.COUNTER else self.name

    @property
    def series(self) -> frozenset[str]:
        """The names of its series."""
        match self.kind:
            case Kind.HISTOGRAM:
                return frozenset(f"{self.name}_{part}" for part in ("bucket", "count", "sum"))
            case Kind.SUMMARY:
                return frozenset(f"{self.name}_{part}" for part in ("count", "sum"))
            case _:
                return frozenset({self.shown_name})


def _counter(name: str, text: str, *labels: str) -> Metric:
    return Metric(f"pgtrickle_{name}", Kind.COUNTER, text, labels)


def _gauge(name: str, text: str, *labels: str) -> Metric:
    return Metric(f"pgtrickle_{name}", Kind.GAUGE, text, labels)


BUILD_INFO: Final = _gauge("build_info", "Always 1; the labels say what runs.", "version", "python")
UP: Final = _gauge("up", "1 while the sidecar can use the database, or Spark; 0 in an outage.", "subject")
OUTAGES: Final = _counter("outages", "Outages of the database and of Spark that began.", "subject")

REFRESHES: Final = _counter(
    "refreshes",
    "Refreshes by stream table, by what they did or tried to do, and by outcome: completed or failed.",
    "table",
    "strategy",
    "outcome",
)
FAILURES: Final = _counter("refresh_failures", "Failed refreshes by the code of the error.", "code")
ROWS: Final = _counter("refresh_rows", "Rows that refreshes inserted and deleted.", "table", "change")
TABLE_TIME: Final = _counter("table_refresh_seconds", "Time that refreshes of a stream table took.", "table")
DURATION: Final = Metric(
    "pgtrickle_refresh_seconds",
    Kind.HISTOGRAM,
    "Duration of completed refreshes: reading, computing and applying.",
    ("strategy",),
)
PHASES: Final = Metric(
    "pgtrickle_refresh_phase_seconds",
    Kind.HISTOGRAM,
    "Duration of each phase of refreshes that had work: wait, read, compute, apply, commit.",
    ("phase",),
)

TABLES: Final = _gauge("tables", "Stream tables by status.", "status")
TABLES_BEHIND: Final = _gauge("tables_behind", "Stream tables with changes that they do not show yet.")
TABLES_LATE: Final = _gauge("tables_late", "Stream tables that are older than their schedule allows.")
TABLES_GATED: Final = _gauge("tables_gated", "Stream tables that a gate, or a missing trigger, holds back.")
STALENESS: Final = _gauge(
    "table_staleness_seconds",
    "Age of the oldest change that a stream table does not show; 0 without one.",
    "table",
)
SCHEDULE: Final = _gauge(
    "table_schedule_seconds", "How old the schedule of a stream table lets it become.", "table"
)
CAPTURE_LAG: Final = _gauge(
    "capture_lag_seconds",
    "Age of the oldest captured change of a source that a reader has not applied.",
    "source",
)
BUFFERS: Final = _gauge("change_buffer_bytes", "Size of the change buffers of a source.", "source")

WORKERS: Final = _gauge("workers", "Units that can be refreshed at the same time.")
BUSY: Final = _gauge("workers_busy", "Units that are being refreshed.")
QUEUED: Final = _gauge("queued_units", "Units that wait for a worker, or for another unit.")
TICKS: Final = Metric(
    "pgtrickle_tick_seconds", Kind.SUMMARY, "Ticks of the scheduler, and the time they took."
)
SINCE_TICK: Final = _gauge("since_last_tick_seconds", "Time since the last poll of the database.")

LOOKUPS: Final = _counter(
    "query_cache_lookups",
    "Compiled queries by where they were found: memory, host, catalog, or nowhere (compiled).",
    "found",
)
CACHED: Final = _gauge("cache_entries", "Entries of the caches: queries, plans and small sources.", "cache")
PROGRAMS: Final = _counter(
    "programs", "Programs for small changes, computed in place (in the driver) or as a Spark job.", "path"
)
SPARK_DEATHS: Final = _counter("spark_deaths", "How often Spark has died.")

CONNECTIONS: Final = _gauge(
    "connections", "Connections to the database: in_use, idle, lent to tasks.", "state"
)
MOST_CONNECTIONS: Final = _gauge("connections_limit", "The most connections that the process may open.")
MEMORY: Final = _gauge("driver_memory_bytes", "Rows that refreshes hold in memory.")
MEMORY_LIMIT: Final = _gauge("driver_memory_limit_bytes", "The most bytes that refreshes may hold together.")
HEAP: Final = _gauge("jvm_heap_bytes", "Heap of Spark's driver: used, committed and max.", "area")
RESIDENT: Final = _gauge("jvm_resident_bytes", "Memory that the process of Spark's driver occupies.")
GATHERED: Final = _gauge(
    "gathered_age_seconds", "Age of what is gathered in the background: buffers and memory of the JVM."
)

METRICS: Final = (
    BUILD_INFO,
    UP,
    OUTAGES,
    REFRESHES,
    FAILURES,
    ROWS,
    TABLE_TIME,
    DURATION,
    PHASES,
    TABLES,
    TABLES_BEHIND,
    TABLES_LATE,
    TABLES_GATED,
    STALENESS,
    SCHEDULE,
    CAPTURE_LAG,
    BUFFERS,
    WORKERS,
    BUSY,
    QUEUED,
    TICKS,
    SINCE_TICK,
    LOOKUPS,
    CACHED,
    PROGRAMS,
    SPARK_DEATHS,
    CONNECTIONS,
    MOST_CONNECTIONS,
    MEMORY,
    MEMORY_LIMIT,
    HEAP,
    RESIDENT,
    GATHERED,
)
