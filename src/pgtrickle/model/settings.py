"""The settings of a pgtrickle process. The CLI, Python, the engine and the docs read this table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any, Final

from pgtrickle.model.http_settings import (
    HTTP,
    HTTP_DSN,
    HTTP_HOST,
    HTTP_TOKEN,
    HTTP_TOKEN_FILE,
    HttpAddress,
)
from pgtrickle.model.limit_settings import (
    BUFFER_GROWTH_LIMIT,
    MAX_DEPTH,
    MAX_GROUPING_SETS,
    MAX_RELATIONS,
    MAX_SLOT_WAL_MB,
    MAX_SUBQUERIES,
    MAX_TEXT_BYTES,
    PUBLICATION_LAG_WARN_LSN,
    SLOT_LAG_WARNING_THRESHOLD_MB,
    STALE_AFTER,
)
from pgtrickle.model.setting import Setting, memory_size, number, one_of, switch, whole_number


class Pooling(Enum):
    """Whether the database address is that of a pooler in transaction mode; AUTO detects it."""

    AUTO = "auto"
    YES = "yes"
    NO = "no"


class SparkPath(Enum):
    """How a program runs on Spark: in the driver, distributed over tasks, or chosen by size."""

    AUTO = "auto"
    SMALL = "small"
    DISTRIBUTED = "distributed"


class LogLevel(Enum):
    """How much an event matters."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    @property
    def number(self) -> int:
        """The level as Python's logging module counts it."""
        return 10 * (1 + list(LogLevel).index(self))


class LogFormat(Enum):
    """Whether the log is for people or for programs."""

    TEXT = "text"
    JSON = "json"


DSN: Final[Setting[str]] = Setting(
    "dsn",
    "",
    str,
    "The address of the database: postgresql://user@host/database, or key=value pairs. Without it, libpq's "
    "PGHOST, PGPORT, PGUSER, PGDATABASE and ~/.pgpass apply. Put passwords there, not here.",
    "libpq's variables",
)
CONFIG: Final[Setting[str | None]] = Setting(
    "config",
    None,
    str,
    "A file with the databases that a sidecar serves, in TOML.",
    "none",
)
DISCOVER: Final = Setting(
    "discover",
    False,
    switch,
    "Serve every database of the server in which pgtrickle is installed, also those that come later.",
    "off",
)
MAX_DATABASES: Final = Setting(
    "max_databases",
    1000,
    whole_number,
    "How many databases one sidecar serves at most.",
    least=1,
    most=100_000,
)
ENABLE_REFRESH_BROKER: Final = Setting(
    "enable_refresh_broker",
    False,
    switch,
    "Read each window of changes of an attached database once for all databases that follow it, and follow "
    "foreign tables whose origin is served, too, instead of comparing them.",
    "off",
)
BROKER_CAPACITY: Final = Setting(
    "broker_capacity",
    4096,
    whole_number,
    "How many pairs of a database and a table that it follows the broker serves at most.",
    least=1,
    is_option=False,
)
IDLE_AFTER: Final = Setting(
    "idle_after",
    60.0,
    number,
    "With several databases: after this many seconds without any event, a database rests. It then has one "
    "connection and is polled once a second. 0 lets none rest.",
    least=0,
    most=86400,
)
LISTEN_DSN: Final[Setting[str | None]] = Setting(
    "listen_dsn",
    None,
    str,
    "The address of the server itself, if dsn is that of a pooler. The sidecar is then notified of changes "
    "and does not have to wait for its next poll.",
    "none",
)
POOLER: Final = Setting(
    "pooler",
    Pooling.AUTO,
    one_of(Pooling),
    "Whether dsn is the address of a pooler in transaction mode, such as PgBouncer. auto detects it.",
    "auto",
)
MAX_CONNECTIONS: Final = Setting(
    "max_connections",
    10,
    whole_number,
    "The number of connections that the process and its Spark tasks may open to a database together.",
)
SPARK_MASTER: Final = Setting(
    "spark_master",
    "local[*]",
    str,
    "The master of Spark: local[*] runs it in this process, spark://…, k8s://… and sc://… on a cluster.",
)
TASK_DSN: Final[Setting[str | None]] = Setting(
    "task_dsn",
    None,
    str,
    "Parts of the address that Spark's executors use in place of those of the process, such as "
    "passfile=/etc/pgtrickle/pgpass, service=… or host=…. Never a password.",
    "as the process",
)
PATH: Final = Setting(
    "path",
    SparkPath.AUTO,
    one_of(SparkPath),
    "How Spark computes a change: in its driver (small), in tasks (distributed), or as its size requires "
    "(auto).",
    "auto",
)
MEMORY_LIMIT: Final[Setting[int | None]] = Setting(
    "memory_limit",
    None,
    memory_size,
    "How much data the refreshes of this process may hold in memory together, such as 512MB. A change that "
    "needs more is computed in Spark's tasks.",
    "an eighth of the heap of Spark's driver",
)
WORKER_POOL_SIZE: Final = Setting(
    "worker_pool_size",
    4,
    whole_number,
    "How many refreshes run at the same time. 0 sets no limit.",
    least=0,
    most=64,
)
CPU_SHARE: Final[Setting[float | None]] = Setting(
    "cpu_share",
    None,
    number,
    "How many CPU seconds per second the sidecar may use while an application is busy: its Python, its JVM, "
    "and the statements of its connections. Stream tables that follow their sources at once are then "
    "refreshed less often.",
    "half of the cores of this machine, and a sixth while three quarters of them are in use",
    least=0.05,
)
MAX_CONSECUTIVE_ERRORS: Final = Setting(
    "max_consecutive_errors",
    3,
    whole_number,
    "Suspend a stream table after this many consecutive failures.",
    least=1,
    most=1000,
)
REFRESH_TIMEOUT: Final = Setting(
    "refresh_timeout",
    3600.0,
    number,
    "Cancel a refresh after this many seconds, unless its stream table has a refresh_timeout of its own. 0 "
    "sets no limit.",
    least=0,
    most=315_576_000,
)
TEMP_FILE_LIMIT: Final = Setting(
    "temp_file_limit",
    "32GB",
    str,
    "The limit of PostgreSQL's temporary files for one connection, or none. Needs GRANT SET ON PARAMETER "
    "temp_file_limit (PostgreSQL 15 and newer) and a direct connection.",
)
STOP_TIMEOUT: Final = Setting(
    "stop_timeout",
    30.0,
    number,
    "How many seconds running refreshes may take to finish after SIGTERM or Ctrl-C. After that they are "
    "canceled and rolled back; nothing is lost.",
    least=0,
    most=86400,
)
TEMPLATE_CACHE_MAX_ENTRIES: Final = Setting(
    "template_cache_max_entries",
    256,
    whole_number,
    "How many compiled queries this process keeps in memory. 0 keeps none.",
    least=0,
)
LOG_LEVEL: Final = Setting(
    "log_level",
    LogLevel.INFO,
    one_of(LogLevel),
    "The least important events that the log of a sidecar shows. debug also shows refreshes that found no "
    "change.",
    "info",
)
LOG_FORMAT: Final = Setting(
    "log_format",
    LogFormat.TEXT,
    one_of(LogFormat),
    "How the log of a sidecar is written: text for people, or json, with one object in each line.",
    "text",
)
TRACES: Final = Setting(
    "traces",
    False,
    switch,
    "Send OpenTelemetry spans, as the OTEL_… variables say. Needs the extra pgtrickle[tracing]. On by "
    "default if OTEL_TRACES_EXPORTER or the address of an OTLP collector is set.",
    "off",
)
METRICS_MAX_TABLES: Final = Setting(
    "metrics_max_tables",
    100,
    whole_number,
    "How many stream tables, and how many sources, have series of their own in the metrics. The others are "
    "summed up as other.",
    least=0,
    most=10_000,
    is_option=False,
)
CACHE_DIR: Final[Setting[str]] = Setting(
    "cache_dir",
    "",
    str,
    "The directory in which processes on this host share compiled queries and Spark's classes, or off.",
    "$XDG_CACHE_HOME/pgtrickle, else ~/.cache/pgtrickle",
    is_option=False,
)
SETTINGS: Final[tuple[Setting[Any], ...]] = (
    DSN,
    CONFIG,
    DISCOVER,
    MAX_DATABASES,
    ENABLE_REFRESH_BROKER,
    BROKER_CAPACITY,
    IDLE_AFTER,
    LISTEN_DSN,
    POOLER,
    MAX_CONNECTIONS,
    SPARK_MASTER,
    TASK_DSN,
    PATH,
    MEMORY_LIMIT,
    WORKER_POOL_SIZE,
    CPU_SHARE,
    MAX_CONSECUTIVE_ERRORS,
    REFRESH_TIMEOUT,
    TEMP_FILE_LIMIT,
    STOP_TIMEOUT,
    TEMPLATE_CACHE_MAX_ENTRIES,
    HTTP,
    HTTP_TOKEN_FILE,
    HTTP_TOKEN,
    HTTP_HOST,
    HTTP_DSN,
    LOG_LEVEL,
    LOG_FORMAT,
    TRACES,
    CACHE_DIR,
    METRICS_MAX_TABLES,
    STALE_AFTER,
    BUFFER_GROWTH_LIMIT,
    PUBLICATION_LAG_WARN_LSN,
    SLOT_LAG_WARNING_THRESHOLD_MB,
    MAX_SLOT_WAL_MB,
    MAX_TEXT_BYTES,
    MAX_DEPTH,
    MAX_RELATIONS,
    MAX_SUBQUERIES,
    MAX_GROUPING_SETS,
)


@dataclass(frozen=True, slots=True)
class Settings:
    """The value of every setting in one process."""

    dsn: str = DSN.default
    config: str | None = CONFIG.default
    discover: bool = DISCOVER.default
    max_databases: int = MAX_DATABASES.default
    enable_refresh_broker: bool = ENABLE_REFRESH_BROKER.default
    broker_capacity: int = BROKER_CAPACITY.default
    idle_after: float = IDLE_AFTER.default
    listen_dsn: str | None = LISTEN_DSN.default
    pooler: Pooling = POOLER.default
    max_connections: int = MAX_CONNECTIONS.default
    spark_master: str = SPARK_MASTER.default
    task_dsn: str | None = TASK_DSN.default
    path: SparkPath = PATH.default
    memory_limit: int | None = MEMORY_LIMIT.default
    worker_pool_size: int = WORKER_POOL_SIZE.default
    cpu_share: float | None = CPU_SHARE.default
    max_consecutive_errors: int = MAX_CONSECUTIVE_ERRORS.default
    refresh_timeout: float = REFRESH_TIMEOUT.default
    temp_file_limit: str = TEMP_FILE_LIMIT.default
    stop_timeout: float = STOP_TIMEOUT.default
    template_cache_max_entries: int = TEMPLATE_CACHE_MAX_ENTRIES.default
    http: HttpAddress | None = HTTP.default
    http_token_file: str | None = HTTP_TOKEN_FILE.default
    http_token: str | None = HTTP_TOKEN.default
    http_host: tuple[str, ...] = HTTP_HOST.default
    http_dsn: str | None = HTTP_DSN.default
    log_level: LogLevel = LOG_LEVEL.default
    log_format: LogFormat = LOG_FORMAT.default
    traces: bool = TRACES.default
    cache_dir: str = CACHE_DIR.default
    metrics_max_tables: int = METRICS_MAX_TABLES.default
    stale_after: float = STALE_AFTER.default
    buffer_growth_limit: int | None = BUFFER_GROWTH_LIMIT.default
    publication_lag_warn_lsn: int | None = PUBLICATION_LAG_WARN_LSN.default
    slot_lag_warning_threshold_mb: int = SLOT_LAG_WARNING_THRESHOLD_MB.default
    max_slot_wal_mb: int = MAX_SLOT_WAL_MB.default
    max_text_bytes: int = MAX_TEXT_BYTES.default
    max_depth: int = MAX_DEPTH.default
    max_relations: int = MAX_RELATIONS.default
    max_subqueries: int = MAX_SUBQUERIES.default
    max_grouping_sets: int = MAX_GROUPING_SETS.default

    def __repr__(self) -> str:
        # a dsn may contain a password
        return f"{type(self).__name__}(…)"

    def cache_directory(self, environment: Mapping[str, str]) -> Path | None:
        """The directory of compiled queries shared on this host; None if it is off or has no place."""
        if self.cache_dir:
            return None if self.cache_dir.strip().lower() == "off" else Path(self.cache_dir)
        caches = environment.get("XDG_CACHE_HOME")
        if caches and Path(caches).is_absolute():
            return Path(caches) / "pgtrickle"
        home = environment.get("HOME")
        return Path(home) / ".cache" / "pgtrickle" if home else None


def read_settings(environment: Mapping[str, str], **given: object) -> Settings:
    """The settings of a process: the given value, else the environment variable, else the default.

    Text is parsed in the same way from both. None means not given.
    """
    values: dict[str, Any] = {}
    for setting in SETTINGS:
        value = given.get(setting.name)
        if value is None:
            value = environment.get(setting.variable) or None
        if value is not None:
            values[setting.name] = setting.value(value) if isinstance(value, str) else value
    return replace(Settings(), **values)
