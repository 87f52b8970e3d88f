"""What refreshes share: connections, Spark, compiled queries, memory and time limits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pgtrickle.capture.attached.broker import Broker
from pgtrickle.capture.attached.databases import AttachedDatabases
from pgtrickle.capture.attached.places import Resolve
from pgtrickle.capture.wal.capture import WalCapture
from pgtrickle.catalog.identity import Installation
from pgtrickle.changes.kept_rows import KeptRows
from pgtrickle.changes.memory import LEAST, SHARE, Memory
from pgtrickle.model.errors import PgTrickleError
from pgtrickle.model.settings import Pooling, Settings, SparkPath
from pgtrickle.model.stream_table import StreamTable, StreamTableId
from pgtrickle.model.tracing import NO_TRACER, Tracer
from pgtrickle.pipeline.configuration import default_heap
from pgtrickle.pipeline.session import Spark
from pgtrickle.pipeline.source import STATEMENT_TIMEOUT
from pgtrickle.pipeline.supply import SparkSupply
from pgtrickle.pipeline.suspects import TableKey
from pgtrickle.pipeline.tags import use_tag
from pgtrickle.plan.limits import USUAL_LIMITS, QueryLimits
from pgtrickle.postgres.addresses import task_address
from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.pool import Pool
from pgtrickle.postgres.temp_files import TempFiles
from pgtrickle.refresh.caching.compilations import Compilations
from pgtrickle.refresh.compilation import Compilation
from pgtrickle.refresh.decide.costs import Costs
from pgtrickle.refresh.decide.reaches import Reaches
from pgtrickle.refresh.timeouts import Timeouts

LARGE_WINDOW = 200_000
"""From this many change rows on, many tasks are faster than one."""
LARGE_REACH = 200_000
"""The same for the rows that a change affects."""
LARGE_TABLE = 200_000
"""From this many rows on, many tasks carry out a load."""

DEFAULTS: Final = Settings()


@dataclass(slots=True)
class Engine:
    """The collaborators of a refresh.

    `start_spark` is called when Spark is first needed, and again after it has died. If several databases
    share one Spark, it is their supply, and `shared_memory` the limit that they share.
    """

    dsn: str = field(repr=False)
    start_spark: Callable[[], Spark] | SparkSupply
    path: SparkPath = SparkPath.AUTO
    large_window: int = LARGE_WINDOW
    large_reach: int = LARGE_REACH
    large_table: int = LARGE_TABLE
    task_dsn: str | None = None
    """Parts of the address that Spark's tasks use in place of those of `dsn`."""
    memory_limit: int | None = None
    """How many bytes all refreshes may hold in the driver; None is a part of the heap of Spark."""
    shared_memory: Memory | None = None
    memory: Memory = field(init=False, repr=False)
    kept: KeptRows = field(default_factory=KeptRows)
    max_connections: int = DEFAULTS.max_connections
    pooling: Pooling = DEFAULTS.pooler
    template_cache_max_entries: int = DEFAULTS.template_cache_max_entries
    cache_directory: Path | None = None
    """Where compiled queries are shared on this host; None if they are not shared."""
    query_limits: QueryLimits = USUAL_LIMITS
    """The limits past which a query is recomputed in full."""
    costs: Costs = field(default_factory=Costs)
    reaches: Reaches = field(default_factory=Reaches)
    dsn_of_tasks: str = field(init=False, repr=False)
    pool: Pool = field(init=False, repr=False)
    attached: AttachedDatabases = field(init=False, repr=False)
    refresh_timeout: float | None = DEFAULTS.refresh_timeout
    """The seconds of a refresh whose stream table has no limit of its own; None is no limit."""
    temp_file_limit: str | None = DEFAULTS.temp_file_limit
    """How large the temporary files of a connection may become, if the role may set that."""
    resolve: Resolve = lambda reference: None
    """The address of a database by its name in the configuration, for databases that are attached."""
    broker: Broker | None = None
    """Reads windows of attached databases once for several engines, if they share one."""
    tracer: Tracer = NO_TRACER
    supply: SparkSupply = field(init=False, repr=False)
    wal: WalCapture = field(init=False, repr=False)
    timeouts: Timeouts = field(init=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _compilations: Compilations = field(init=False)
    _generation: int | None = None
    _place: str | None = None
    _owns_spark: bool = field(init=False)

    def __post_init__(self) -> None:
        self.pool = Pool(self.dsn, self.max_connections, self.pooling, temp_file_limit=self.temp_file_limit)
        self.dsn_of_tasks = task_address(self.dsn, self.task_dsn)
        self.attached = AttachedDatabases(self.pool, self.resolve, self.broker)
        self.wal = WalCapture(self.dsn)
        self._owns_spark = not isinstance(self.start_spark, SparkSupply)
        self.supply = (
            self.start_spark if isinstance(self.start_spark, SparkSupply) else SparkSupply(self.start_spark)
        )
        self.timeouts = Timeouts(self.pool, self.supply, self.refresh_timeout)
        self._compilations = Compilations(
            self.template_cache_max_entries, self.cache_directory, self.query_limits
        )
        self.memory = self.shared_memory or process_memory(self.supply, lambda: self.memory_limit)

    @property
    def spark(self) -> Spark:
        """Spark, started when it is first needed; raises SparkLost while it starts again."""
        return self.supply.get()

    @property
    def has_embedded_spark(self) -> bool:
        """Whether Spark computes on one machine, beside its driver; no if it cannot be asked now."""
        with suppress(PgTrickleError):
            return self.spark.is_embedded
        return False

    @contextmanager
    def computing(self, *tables: StreamTableId) -> Iterator[Spark]:
        """Spark for computing these stream tables; raises SparkLost if it dies."""
        with (
            self.timeouts.on_spark() as tag,
            use_tag(tag),
            self.supply.computing(frozenset(map(self.key, tables))) as spark,
        ):
            yield spark

    def key(self, table: StreamTableId) -> TableKey:
        """The stream table among those of all databases that use the same Spark."""
        return id(self), table

    def is_isolated(self, table: StreamTableId) -> bool:
        """Whether a stream table has killed Spark too often to compute on it now."""
        return self.supply.is_isolated(self.key(table))

    def as_it_may_run(self, table: StreamTableId, found: Compilation) -> Compilation:
        """The compilation, for PostgreSQL alone if Spark has died too often while it computed this table."""
        if found.compiled is None or not self.is_isolated(table):
            return found
        return found.only_full("Spark has died while it computed this table, so PostgreSQL evaluates it")

    def task_settings(self) -> tuple[tuple[str, str], ...]:
        """The limits of the statements of Spark's tasks: the remaining time, and temporary files."""
        settings: list[tuple[str, str]] = []
        limit = self.timeouts.current
        if limit is not None and limit.left is not None:
            settings.append((STATEMENT_TIMEOUT, str(max(1, round(limit.left * 1000)))))
        if self.temp_file_limit is not None and self.pool.temp_files is TempFiles.LIMITED:
            settings.append(("temp_file_limit", self.temp_file_limit))
        return tuple(settings)

    def needs_spark(self, table: StreamTableId) -> bool:
        """Whether a refresh of the table needs Spark, as far as this process knows."""
        found = self.last_compilation(table)
        return found is not None and self.as_it_may_run(table, found).compiled is not None

    @property
    def _spark(self) -> Spark | None:
        return self.supply.current

    @_spark.setter
    def _spark(self, spark: Spark | None) -> None:
        self.supply.replace(spark)

    def connection(self) -> AbstractContextManager[Connection]:
        """A connection in a new transaction; what is not committed is rolled back at the end."""
        return self.pool.connection()

    def prepares(self, table: StreamTable) -> bool:
        """Whether refreshes of this table prepare their statements: never through a pooler."""
        return not table.is_pooler_compatible and not self.pool.is_pooled

    @property
    def is_abandoned(self) -> bool:
        """Whether running refreshes were given up; their failures are not the fault of a stream table."""
        return self.pool.is_abandoned

    def abandon(self) -> None:
        """Give up what runs, in all threads: statements are canceled, transactions rolled back.

        A refresh between two statements continues until its next one, so call this again while any runs.
        """
        self.pool.abandon()
        spark = self.supply.current
        if spark is not None:
            spark.interrupt()

    def compilation(self, connection: Connection, table: StreamTable) -> Compilation:
        """The compilation of the table's query, made now or before."""
        return self._compilations.of(connection, table)

    def cached_compilation(self, table: StreamTable) -> Compilation | None:
        """The compilation of the table's query, if the process has it."""
        return self._compilations.in_memory(table)

    def with_operators(self, connection: Connection, table: StreamTable) -> Compilation:
        """The compilation with its operators, which only the process that compiled it has: to explain it."""
        return self._compilations.with_operators(connection, table)

    def last_compilation(self, table: StreamTableId) -> Compilation | None:
        """The last compilation of the table in this process, perhaps out of date."""
        return self._compilations.last(table)

    def is_outdated(self, table: StreamTable) -> bool:
        """Whether the last compilation no longer fits the table."""
        return self._compilations.is_outdated(table)

    def forget(self, *tables: StreamTableId) -> None:
        """Compile these tables again next time: something that their queries read has changed."""
        for table in tables:
            self._compilations.forget(table)
            self.kept.forget(table)

    def has_moved(self, found: Installation) -> bool:
        """Whether the address leads to another server than before; then the memory of the process is cleared.

        A promoted standby may lack the last commits, and continues with the same transaction ids. Raises in a
        copy of the database, and if the catalog has another version: refreshes must not run there.
        """
        found.check()
        with self._lock:
            before, self._place = self._place, found.place
            if before in (None, found.place):
                return False
            self._generation = None
        self._forget_all()
        self.wal.close()
        self.pool.renew()
        return True

    def notice_generation(self, generation: int) -> None:
        """Clear the caches if a user asked for that since the last call."""
        with self._lock:
            is_newer = self._generation is not None and generation > self._generation
            # another thread may have seen a newer one
            self._generation = max(generation, self._generation or 0)
        if is_newer:
            self._forget_all()

    def _forget_all(self) -> None:
        self._compilations.clear()
        self.kept.clear()
        self.reaches.clear()
        spark = self.supply.current
        if spark is not None:
            spark.programs.clear()

    def cache_counters(self) -> Mapping[str, int]:
        """The counters of the caches since the process began, by name."""
        spark = self.supply.current
        programs = spark.programs if spark is not None else None
        return {
            **self._compilations.counters(),
            "spark_plans": len(programs) if programs is not None else 0,
            "programs_in_place": programs.counters.in_driver if programs is not None else 0,
            "programs_as_jobs": programs.counters.as_jobs if programs is not None else 0,
            "kept_reads": len(self.kept),
            "spark_deaths": self.supply.deaths,
        }

    def close(self) -> None:
        """Stop Spark if it was started and belongs to this engine alone, and close the connections."""
        self.timeouts.close()
        self.attached.close()
        self.wal.close()
        self.pool.close()
        if self._owns_spark:
            self.supply.close()
            self.tracer.close()


def process_memory(supply: SparkSupply, limit: Callable[[], int | None]) -> Memory:
    """How much the refreshes of a process may hold together: the limit, or a part of the heap of Spark."""

    def found() -> int:
        if (given := limit()) is not None:
            return given
        spark = supply.current
        return max(LEAST, (spark.heap_bytes if spark is not None else default_heap()) // SHARE)

    return Memory(found)
