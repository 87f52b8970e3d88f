"""The command `run`: the sidecar, which prints one line for each refresh."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Final

from rich.text import Text
from typer import BadParameter, Option

from pgtrickle.commands.connections import open_installed
from pgtrickle.interfaces.cli import formatting
from pgtrickle.interfaces.cli.error_reporting import error_line
from pgtrickle.interfaces.cli.options import (
    CacheEntries,
    Dsn,
    Json,
    ListenDsn,
    Master,
    MaxConnections,
    MaxErrors,
    MemoryLimit,
    PathOption,
    PoolerOption,
    RefreshTimeout,
    StopTimeout,
    TempFileLimit,
    Workers,
)
from pgtrickle.interfaces.cli.printing import errors, output, print_json_line
from pgtrickle.interfaces.cli.progress import ProgressLine
from pgtrickle.model.errors import SparkLost
from pgtrickle.model.settings import Pooling, Settings, SparkPath, read_settings
from pgtrickle.model.stream_table import Action
from pgtrickle.postgres.connection import check_writable
from pgtrickle.postgres.pool import Pool

if TYPE_CHECKING:
    from pgtrickle.commands.run import RefreshEvent
    from pgtrickle.pipeline.session import Spark
    from pgtrickle.refresh.engine import Engine

DEFAULTS: Final = Settings()
POLL_SECONDS = 0.2
GRACE_SECONDS = 10.0
"""How long abandoned refreshes may take to stop."""

SparkConf = Annotated[
    list[str] | None,
    Option("--spark-conf", show_default=False, help="A setting of Spark, as key=value; may be repeated."),
]


def run(
    dsn: Dsn = "",
    spark_master: Master = "local[*]",
    spark_conf: SparkConf = None,
    path: PathOption = SparkPath.AUTO,
    max_consecutive_errors: MaxErrors = DEFAULTS.max_consecutive_errors,
    pooler: PoolerOption = Pooling.AUTO,
    max_connections: MaxConnections = DEFAULTS.max_connections,
    memory_limit: MemoryLimit = None,
    worker_pool_size: Workers = DEFAULTS.worker_pool_size,
    listen_dsn: ListenDsn = None,
    template_cache_max_entries: CacheEntries = DEFAULTS.template_cache_max_entries,
    refresh_timeout: RefreshTimeout = DEFAULTS.refresh_timeout,
    temp_file_limit: TempFileLimit = DEFAULTS.temp_file_limit,
    stop_timeout: StopTimeout = DEFAULTS.stop_timeout,
    json: Json = False,
) -> None:
    """Follow the schedules of all stream tables until Ctrl-C or SIGTERM. This is the sidecar."""
    spark_settings = _spark_settings(spark_conf or [])
    settings = read_settings(
        os.environ,
        dsn=dsn,
        spark_master=spark_master,
        path=path,
        max_consecutive_errors=max_consecutive_errors,
        pooler=pooler,
        max_connections=max_connections,
        memory_limit=memory_limit,
        worker_pool_size=worker_pool_size,
        listen_dsn=listen_dsn,
        template_cache_max_entries=template_cache_max_entries,
        refresh_timeout=refresh_timeout,
        temp_file_limit=temp_file_limit,
        stop_timeout=stop_timeout,
    )
    with open_installed(dsn) as connection:
        check_writable(connection)
        where = f"{connection.info.dbname} at {connection.info.host or 'the local socket'}"
    # before Spark starts, so that a wrong setting is reported immediately
    pool = Pool(dsn, max_connections, pooler)
    way = "through a pooler" if pool.is_pooled else "directly"
    pool.close()
    settings = replace(settings, pooler=Pooling.YES if pool.is_pooled else Pooling.NO)
    engine = _start_engine(settings, spark_settings)
    try:
        errors().print(
            f"Following the stream tables of {where}, connected {way},"
            f" with at most {max_connections} connections. Ctrl-C stops.",
            soft_wrap=True,
        )
        _serve(engine, settings, is_json=json)
    finally:
        engine.close()
    errors().print("Stopped.")


def _start_engine(settings: Settings, spark_settings: dict[str, str]) -> Engine:
    """Start an engine and warm up its Spark, so that no refresh waits for it."""
    began = time.monotonic()
    with ProgressLine(f"Starting Spark on {settings.spark_master}"):
        from pgtrickle.commands.engine import build_engine
        from pgtrickle.pipeline.session import open_spark

        # we report a dead JVM ourselves, and only once
        logging.getLogger().addFilter(lambda record: record.msg != "Exception while sending command.")

        def start() -> Spark:
            spark = open_spark(settings.spark_master, configuration=spark_settings)
            spark.warm()
            return spark

        engine = build_engine(settings, start)
        _ = engine.spark
    errors().print(
        f"Spark on {settings.spark_master} is ready after {time.monotonic() - began:.1f} s;"
        f" small changes computed in place: {engine.supply.in_place}.",
        soft_wrap=True,
    )
    return engine


def _serve(engine: Engine, settings: Settings, *, is_json: bool) -> None:
    """Run the scheduler in its own thread, so that this one can handle signals."""
    from pgtrickle.commands.run import run as run_with

    stop = threading.Event()
    failures: list[BaseException] = []

    def loop() -> None:
        try:
            run_with(engine, stop, _print_event_json if is_json else _print_event, settings)
        except BaseException as failure:
            failures.append(failure)

    _stop_on_signals(stop)
    # a daemon, because the process must end even if the scheduler hangs
    thread = threading.Thread(target=loop, name="sidecar", daemon=True)
    thread.start()
    while thread.is_alive() and not stop.is_set():
        thread.join(POLL_SECONDS)
    thread.join(settings.stop_timeout)
    if thread.is_alive():
        errors().print(
            f"Giving up what is not done after {settings.stop_timeout:g} s; nothing of it is kept."
        )
        _abandon(engine, thread)
    elif failures:
        raise failures[0]


def _abandon(engine: Engine, thread: threading.Thread) -> None:
    """Make every running refresh fail. One that is between two statements fails at its next statement."""
    deadline = time.monotonic() + GRACE_SECONDS
    while thread.is_alive() and time.monotonic() < deadline:
        engine.abandon()
        thread.join(POLL_SECONDS)


def _stop_on_signals(stop: threading.Event) -> None:
    """Finish the running refreshes at the first signal; stop at once at the second, which loses nothing."""

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        errors().print("Stopping when the refreshes at hand are done; once more stops at once.")
        stop.set()

    # after Spark has started, because PySpark installs its own SIGINT handler
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handle)


def _print_event(event: RefreshEvent) -> None:
    """Print one line with time, table, action, rows, duration and reason; nothing if no data had changed."""
    if event.outcome is not None and event.outcome.action is Action.NO_DATA:
        return
    text = Text(event.at.astimezone().strftime("%H:%M:%S") + "  ", style="dim")
    text.append(f"{_name(event) or _subject(event):<30}  ", style="bold")
    if event.note is not None:
        text.append(event.note, style="green")
    elif event.error is not None:
        text.append(f"error {event.error.code}: {error_line(event.error)}", style="red")
    elif event.outcome is not None:
        outcome = event.outcome
        text.append(f"{outcome.action.value:<12}  ")
        text.append(f"+{formatting.count(outcome.rows_inserted):<8}", style="green")
        text.append(f"−{formatting.count(outcome.rows_deleted):<8}", style="magenta")
        text.append(f"{formatting.milliseconds(outcome.milliseconds):>8}  ")
        text.append(outcome.reason, style="dim")
    output().print(text, soft_wrap=True)


def _print_event_json(event: RefreshEvent) -> None:
    outcome, error = event.outcome, event.error
    print_json_line(
        {
            "at": event.at,
            "name": _name(event),
            "action": outcome.action if outcome else None,
            "rows_inserted": outcome.rows_inserted if outcome else 0,
            "rows_deleted": outcome.rows_deleted if outcome else 0,
            "milliseconds": outcome.milliseconds if outcome else None,
            "reason": outcome.reason if outcome else None,
            "note": event.note,
            "error": {"code": error.code, "message": error.message, "hint": error.hint} if error else None,
        }
    )


def _subject(event: RefreshEvent) -> str:
    """The subject of an event that names no stream table."""
    concerns_spark = event.note is not None or isinstance(event.error, SparkLost)
    return "Spark" if concerns_spark else "the database"


def _name(event: RefreshEvent) -> str | None:
    """The stream table of an event; None if the event concerns all of them."""
    return str(event.name) if event.name.name else None


def _spark_settings(given: list[str]) -> dict[str, str]:
    for setting in given:
        if "=" not in setting:
            raise BadParameter(f"--spark-conf {setting} is not key=value")
    return dict(setting.split("=", 1) for setting in given)
