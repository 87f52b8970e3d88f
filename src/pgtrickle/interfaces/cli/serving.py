"""The sidecar on the command line: `pgtrickle run` follows the schedules, one line for each refresh."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from dataclasses import asdict, dataclass
from types import FrameType
from typing import TYPE_CHECKING, Annotated

from rich.text import Text
from typer import BadParameter, Option

from pgtrickle.commands.opening import opened
from pgtrickle.interfaces.cli import words
from pgtrickle.interfaces.cli.failures import line
from pgtrickle.interfaces.cli.options import (
    Dsn,
    Json,
    ListenDsn,
    Master,
    MaxConnections,
    MaxErrors,
    MemoryLimit,
    PathOption,
    PoolerOption,
    Spread,
    Workers,
)
from pgtrickle.interfaces.cli.printing import errors, output, print_json_line
from pgtrickle.interfaces.cli.progress import Waiting
from pgtrickle.interfaces.environment import memory_limit_of
from pgtrickle.model.errors import SparkLost
from pgtrickle.model.stream_table import Action
from pgtrickle.postgres.connection import check_writable
from pgtrickle.postgres.pool import MOST, Pool
from pgtrickle.postgres.pooling import Pooling

if TYPE_CHECKING:
    from pgtrickle.commands.run import RefreshEvent
    from pgtrickle.pipeline.session import Spark
    from pgtrickle.refresh.engine import Engine

LOOK_SECONDS = 0.2
GRACE_SECONDS = 10.0
"""How long what was given up may take to notice it."""

StopTimeout = Annotated[
    float,
    Option(
        "--stop-timeout",
        envvar="PGTRICKLE_STOP_TIMEOUT",
        show_envvar=False,
        min=0,
        max=86400,
        help="Seconds that refreshes have to finish after SIGTERM or Ctrl-C; then they are given up, which "
        "loses nothing. Without it PGTRICKLE_STOP_TIMEOUT.",
    ),
]
RefreshTimeout = Annotated[
    float,
    Option(
        "--refresh-timeout",
        envvar="PGTRICKLE_REFRESH_TIMEOUT",
        show_envvar=False,
        min=0,
        max=315576000,
        help="Seconds that a refresh may take where its stream table has no refresh_timeout; then it is "
        "cancelled. 0 is any. Without it PGTRICKLE_REFRESH_TIMEOUT.",
    ),
]
TempFileLimit = Annotated[
    str,
    Option(
        "--temp-file-limit",
        envvar="PGTRICKLE_TEMP_FILE_LIMIT",
        show_envvar=False,
        help="How large the temporary files of a connection may become (temp_file_limit of PostgreSQL), or "
        "none. Needs GRANT SET ON PARAMETER temp_file_limit, and a direct connection.",
    ),
]
Settings = Annotated[
    list[str] | None,
    Option("--spark-conf", show_default=False, help="A setting of Spark, as key=value; may be repeated."),
]

CacheEntries = Annotated[
    int,
    Option(
        "--template-cache-max-entries",
        envvar="PGTRICKLE_TEMPLATE_CACHE_MAX_ENTRIES",
        show_envvar=False,
        min=0,
        help="How many compiled queries this process keeps; 0 keeps none.",
    ),
]


@dataclass(frozen=True, slots=True)
class Bounds:
    """What refreshes may take: memory here, seconds each, temporary files in PostgreSQL."""

    memory_limit: int | None
    refresh_timeout: float | None
    temp_file_limit: str | None


@dataclass(frozen=True, slots=True)
class Serving:
    """How the schedules are served."""

    max_consecutive_errors: int
    worker_pool_size: int
    listen_dsn: str | None


def run(
    dsn: Dsn = "",
    spark_master: Master = "local[*]",
    spark_conf: Settings = None,
    path: PathOption = Spread.AUTO,
    max_consecutive_errors: MaxErrors = 3,
    pooler: PoolerOption = Pooling.AUTO,
    max_connections: MaxConnections = MOST,
    memory_limit: MemoryLimit = None,
    worker_pool_size: Workers = 4,
    listen_dsn: ListenDsn = None,
    template_cache_max_entries: CacheEntries = 256,
    refresh_timeout: RefreshTimeout = 3600.0,
    temp_file_limit: TempFileLimit = "32GB",
    stop_timeout: StopTimeout = 30.0,
    json: Json = False,
) -> None:
    """Follow the schedules of all stream tables until Ctrl-C or SIGTERM. This is the sidecar."""
    settings, limit = _settings(spark_conf or []), memory_limit_of(memory_limit)
    with opened(dsn) as connection:
        check_writable(connection)
        where = f"{connection.info.dbname} at {connection.info.host or 'the local socket'}"
    # before Spark starts: what is wrong with it should be told at once
    pool = Pool(dsn, max_connections, pooler)
    way = "through a pooler" if pool.is_pooled else "directly"
    pool.close()
    bounds = Bounds(limit, refresh_timeout or None, None if temp_file_limit == "none" else temp_file_limit)
    engine = _started(dsn, spark_master, settings, path, pool, template_cache_max_entries, bounds)
    try:
        errors().print(
            f"Following the stream tables of {where}, connected {way},"
            f" with at most {max_connections} connections. Ctrl-C stops.",
            soft_wrap=True,
        )
        serving = Serving(max_consecutive_errors, worker_pool_size, listen_dsn)
        _serve(engine, serving, stop_timeout=stop_timeout, is_json=json)
    finally:
        engine.close()
    errors().print("Stopped.")


def _started(
    dsn: str,
    master: str,
    settings: dict[str, str],
    path: Spread,
    pool: Pool,
    cache_entries: int,
    bounds: Bounds,
) -> Engine:
    """An engine whose Spark is warm: no refresh should pay for that."""
    began = time.monotonic()
    with Waiting(f"Starting Spark on {master}"):
        from pgtrickle.pipeline.session import open_spark
        from pgtrickle.plan.limits import limits_from
        from pgtrickle.refresh.caching.host import host_directory
        from pgtrickle.refresh.engine import Engine, Path

        # a dead JVM is told of once, by us
        logging.getLogger().addFilter(lambda record: record.msg != "Exception while sending command.")

        def start() -> Spark:
            spark = open_spark(master, configuration=settings)
            spark.warm()
            return spark

        engine = Engine(
            dsn,
            start,
            Path(path.value),
            max_connections=pool.most,
            pooling=Pooling.YES if pool.is_pooled else Pooling.NO,
            template_cache_max_entries=cache_entries,
            memory_limit=bounds.memory_limit,
            refresh_timeout=bounds.refresh_timeout,
            temp_file_limit=bounds.temp_file_limit,
            cache_directory=host_directory(os.environ),
            query_limits=limits_from(os.environ),
        )
        _ = engine.spark
    errors().print(f"Spark on {master} is ready after {time.monotonic() - began:.1f} s.", soft_wrap=True)
    return engine


def _serve(engine: Engine, serving: Serving, *, stop_timeout: float, is_json: bool) -> None:
    """Run the loop in a thread of its own, so that signals find this one waiting."""
    from pgtrickle.commands.run import run as run_with

    stop = threading.Event()
    failures: list[BaseException] = []

    def loop() -> None:
        try:
            run_with(engine, stop, _tell_json if is_json else _tell, **asdict(serving))
        except BaseException as failure:
            failures.append(failure)

    _stop_on_signals(stop)
    # whatever it does after we have given up, it must not keep the process
    thread = threading.Thread(target=loop, name="sidecar", daemon=True)
    thread.start()
    while thread.is_alive() and not stop.is_set():
        thread.join(LOOK_SECONDS)
    thread.join(stop_timeout)
    if thread.is_alive():
        errors().print(f"Giving up what is not done after {stop_timeout:g} s; nothing of it is kept.")
        _abandon(engine, thread)
    elif failures:
        raise failures[0]


def _abandon(engine: Engine, thread: threading.Thread) -> None:
    """Let all that runs fail; what is between two statements fails at its next one."""
    deadline = time.monotonic() + GRACE_SECONDS
    while thread.is_alive() and time.monotonic() < deadline:
        engine.abandon()
        thread.join(LOOK_SECONDS)


def _stop_on_signals(stop: threading.Event) -> None:
    """The first signal lets what is at hand finish; a second one stops at once, which loses nothing."""

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        errors().print("Stopping when the refreshes at hand are done; once more stops at once.")
        stop.set()

    # set after Spark has started: PySpark puts a handler of its own on SIGINT
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handle)


def _tell(event: RefreshEvent) -> None:
    """One line: time, table, what was done, rows, time taken, why. Nothing to do is not worth a line."""
    if event.outcome is not None and event.outcome.action is Action.NO_DATA:
        return
    text = Text(event.at.astimezone().strftime("%H:%M:%S") + "  ", style="dim")
    text.append(f"{_name(event) or _subject(event):<30}  ", style="bold")
    if event.note is not None:
        text.append(event.note, style="green")
    elif event.error is not None:
        text.append(f"error {event.error.code}: {line(event.error)}", style="red")
    elif event.outcome is not None:
        done = event.outcome
        text.append(f"{done.action.value:<12}  ")
        text.append(f"+{words.count(done.rows_inserted):<8}", style="green")
        text.append(f"−{words.count(done.rows_deleted):<8}", style="magenta")
        text.append(f"{words.milliseconds(done.milliseconds):>8}  ")
        text.append(done.reason, style="dim")
    output().print(text, soft_wrap=True)


def _tell_json(event: RefreshEvent) -> None:
    done, error = event.outcome, event.error
    print_json_line(
        {
            "at": event.at,
            "name": _name(event),
            "action": done.action if done else None,
            "rows_inserted": done.rows_inserted if done else 0,
            "rows_deleted": done.rows_deleted if done else 0,
            "milliseconds": done.milliseconds if done else None,
            "reason": done.reason if done else None,
            "note": event.note,
            "error": {"code": error.code, "message": error.message, "hint": error.hint} if error else None,
        }
    )


def _subject(event: RefreshEvent) -> str:
    """What an event is about that names no stream table."""
    is_of_spark = event.note is not None or isinstance(event.error, SparkLost)
    return "Spark" if is_of_spark else "the database"


def _name(event: RefreshEvent) -> str | None:
    """The stream table that the event is about; None where it is about all."""
    return str(event.name) if event.name.name else None


def _settings(given: list[str]) -> dict[str, str]:
    for setting in given:
        if "=" not in setting:
            raise BadParameter(f"--spark-conf {setting} is not key=value")
    return dict(setting.split("=", 1) for setting in given)
