"""The settings of a pgtrickle process. The CLI, Python, the engine and the docs read this table."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from pgtrickle.model.errors import CommandRefused

T = TypeVar("T")
PREFIX: Final = "PGTRICKLE_"


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


@dataclass(frozen=True, slots=True)
class Setting(Generic[T]):
    """One setting. `read` parses its value from text, or raises ValueError with the expected form."""

    name: str
    default: T
    read: Callable[[str], T]
    help: str
    shown_default: str = ""
    """The default in words, if the value itself does not explain it."""
    least: float | None = None
    most: float | None = None
    is_option: bool = True
    """Whether the command line has an option for it. Every setting has an environment variable."""

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return PREFIX + self.name.upper()

    @property
    def option(self) -> str:
        """The command-line option that sets it."""
        return "--" + self.name.replace("_", "-")

    def value(self, text: str) -> T:
        """The value of a text; raise if it is not valid."""
        try:
            found = self.read(text)
        except ValueError as wrong:
            raise CommandRefused(f"{self.name} is {text!r}", hint=f"it must be {wrong}") from None
        if isinstance(found, (int, float)):
            self._check_range(found, text)
        return found

    def _check_range(self, number: float, text: str) -> None:
        if self.least is not None and number < self.least:
            raise CommandRefused(f"{self.name} is {text!r}", hint=f"it must be at least {self.least:g}")
        if self.most is not None and number > self.most:
            raise CommandRefused(f"{self.name} is {text!r}", hint=f"it must be at most {self.most:g}")


def _whole_number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("a whole number") from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("a number") from None


def _pooling(text: str) -> Pooling:
    try:
        return Pooling(text.lower())
    except ValueError:
        raise ValueError("auto, yes or no") from None


def _spark_path(text: str) -> SparkPath:
    try:
        return SparkPath(text.lower())
    except ValueError:
        raise ValueError("auto, small or distributed") from None


_SIZE: Final = re.compile(r"\s*(\d+)\s*([kmgt]?)i?b?\s*\Z", re.IGNORECASE)
_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_LEAST_MEMORY: Final = 1 << 20


def _memory(text: str) -> int | None:
    parts = _SIZE.match(text)
    size = int(parts[1]) * _UNITS[parts[2].lower()] if parts else 0
    if size < _LEAST_MEMORY:
        raise ValueError("a size of at least 1 MB, such as 512MB or 2GB")
    return size


DSN: Final[Setting[str]] = Setting(
    "dsn",
    "",
    str,
    "Where PostgreSQL is: postgresql://user@host/database, or key=value pairs. Without it, libpq's PGHOST, "
    "PGUSER … and ~/.pgpass decide, which are also the better places for a password.",
    "what libpq finds",
)
LISTEN_DSN: Final[Setting[str | None]] = Setting(
    "listen_dsn",
    None,
    str,
    "An address of the server itself, if dsn is that of a pooler. Sidecars then hear of changes at once "
    "instead of polling for them.",
    "none",
)
POOLER: Final = Setting(
    "pooler",
    Pooling.AUTO,
    _pooling,
    "Whether dsn is the address of a pooler in transaction mode, such as PgBouncer: yes, no, or auto to "
    "find out.",
    "auto",
)
MAX_CONNECTIONS: Final = Setting(
    "max_connections",
    10,
    _whole_number,
    "How many connections the process and its Spark tasks may open together.",
)
SPARK_MASTER: Final = Setting(
    "spark_master", "local[*]", str, "Where Spark runs: local[*], spark://…, k8s://… or sc://…."
)
PATH: Final = Setting(
    "path",
    SparkPath.AUTO,
    _spark_path,
    "Where Spark computes: small (in the driver), distributed (spread over tasks), or auto (chosen by size).",
    "auto",
)
MEMORY_LIMIT: Final[Setting[int | None]] = Setting(
    "memory_limit",
    None,
    _memory,
    "How much data the refreshes of this process may hold at once, such as 512MB. A change that reaches more "
    "is computed in Spark's tasks.",
    "an eighth of the heap of Spark's driver",
)
WORKER_POOL_SIZE: Final = Setting(
    "worker_pool_size",
    4,
    _whole_number,
    "How many threads refresh at the same time; 0 starts one for each task.",
    least=0,
    most=64,
)
MAX_CONSECUTIVE_ERRORS: Final = Setting(
    "max_consecutive_errors",
    3,
    _whole_number,
    "Suspend a stream table after this many consecutive failures.",
    least=1,
    most=1000,
)
REFRESH_TIMEOUT: Final = Setting(
    "refresh_timeout",
    3600.0,
    _number,
    "Cancel a refresh that takes longer than this many seconds, unless its stream table has a "
    "refresh_timeout of its own; 0 is no limit.",
    least=0,
    most=315_576_000,
)
TEMP_FILE_LIMIT: Final = Setting(
    "temp_file_limit",
    "32GB",
    str,
    "How large the temporary files of one connection may become in PostgreSQL, or none. Needs GRANT SET ON "
    "PARAMETER temp_file_limit (PostgreSQL 15 and newer) and a direct connection.",
)
STOP_TIMEOUT: Final = Setting(
    "stop_timeout",
    30.0,
    _number,
    "How many seconds running refreshes have to finish after SIGTERM or Ctrl-C. After that they are "
    "cancelled, which loses nothing.",
    least=0,
    most=86400,
)
TEMPLATE_CACHE_MAX_ENTRIES: Final = Setting(
    "template_cache_max_entries",
    256,
    _whole_number,
    "How many compiled queries this process caches; 0 caches none.",
    least=0,
)
CACHE_DIR: Final[Setting[str]] = Setting(
    "cache_dir",
    "",
    str,
    "A directory in which the processes of this host share compiled queries, or off.",
    "$XDG_CACHE_HOME/pgtrickle, else ~/.cache/pgtrickle",
    is_option=False,
)

MAX_TEXT_BYTES: Final = Setting(
    "max_text_bytes",
    1_000_000,
    _whole_number,
    "Recompute queries in full whose text, or the text of a view they read, is longer than this.",
    least=1,
    is_option=False,
)
MAX_DEPTH: Final = Setting(
    "max_depth",
    250,
    _whole_number,
    "Recompute queries in full that nest expressions and subqueries deeper than this; in a chain of ANDs "
    "each counts as a level.",
    least=1,
    is_option=False,
)
MAX_RELATIONS: Final = Setting(
    "max_relations",
    100,
    _whole_number,
    "Recompute queries in full that name more tables, views and functions than this.",
    least=1,
    is_option=False,
)
MAX_SUBQUERIES: Final = Setting(
    "max_subqueries",
    100,
    _whole_number,
    "Recompute queries in full that have more subqueries in expressions than this, those of views included.",
    least=1,
    is_option=False,
)
MAX_GROUPING_SETS: Final = Setting(
    "max_grouping_sets",
    64,
    _whole_number,
    "Recompute queries in full that have more grouping sets in one GROUP BY than this.",
    least=1,
    is_option=False,
)

SETTINGS: Final[tuple[Setting[Any], ...]] = (
    DSN,
    LISTEN_DSN,
    POOLER,
    MAX_CONNECTIONS,
    SPARK_MASTER,
    PATH,
    MEMORY_LIMIT,
    WORKER_POOL_SIZE,
    MAX_CONSECUTIVE_ERRORS,
    REFRESH_TIMEOUT,
    TEMP_FILE_LIMIT,
    STOP_TIMEOUT,
    TEMPLATE_CACHE_MAX_ENTRIES,
    CACHE_DIR,
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
    listen_dsn: str | None = LISTEN_DSN.default
    pooler: Pooling = POOLER.default
    max_connections: int = MAX_CONNECTIONS.default
    spark_master: str = SPARK_MASTER.default
    path: SparkPath = PATH.default
    memory_limit: int | None = MEMORY_LIMIT.default
    worker_pool_size: int = WORKER_POOL_SIZE.default
    max_consecutive_errors: int = MAX_CONSECUTIVE_ERRORS.default
    refresh_timeout: float = REFRESH_TIMEOUT.default
    temp_file_limit: str = TEMP_FILE_LIMIT.default
    stop_timeout: float = STOP_TIMEOUT.default
    template_cache_max_entries: int = TEMPLATE_CACHE_MAX_ENTRIES.default
    cache_dir: str = CACHE_DIR.default
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
