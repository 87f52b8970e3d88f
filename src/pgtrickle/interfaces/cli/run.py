"""The command `run`: the sidecar."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from types import FrameType
from typing import TYPE_CHECKING, Final

from pgtrickle.catalog.install import check_may_serve, check_original
from pgtrickle.commands.connections import open_installed
from pgtrickle.interfaces.background import POLL_SECONDS, cancel_refreshes
from pgtrickle.interfaces.cli.http_server import open_server
from pgtrickle.interfaces.cli.log_lines import SidecarLog
from pgtrickle.interfaces.cli.options import (
    CacheEntries,
    Dsn,
    Http,
    HttpDsn,
    HttpHost,
    HttpTokenFile,
    Json,
    ListenDsn,
    LogFormatOption,
    LogLevelOption,
    Master,
    MaxConnections,
    MaxErrors,
    MemoryLimit,
    PathOption,
    PoolerOption,
    RefreshTimeout,
    StopTimeout,
    TempFileLimit,
    Traces,
    Workers,
)
from pgtrickle.interfaces.cli.spark_options import SparkConf, spark_settings_of
from pgtrickle.interfaces.http.server import HttpServer, both
from pgtrickle.model.settings import LogFormat, LogLevel, Pooling, Settings, SparkPath, read_settings
from pgtrickle.pipeline.java import require_java
from pgtrickle.postgres.connection import check_writable
from pgtrickle.postgres.pool import Pool

if TYPE_CHECKING:
    from pgtrickle.pipeline.session import Spark
    from pgtrickle.refresh.engine import Engine

DEFAULTS: Final = Settings()


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
    http: Http = None,
    http_token_file: HttpTokenFile = None,
    http_host: HttpHost = None,
    http_dsn: HttpDsn = None,
    log_level: LogLevelOption = DEFAULTS.log_level,
    log_format: LogFormatOption = DEFAULTS.log_format,
    traces: Traces = DEFAULTS.traces,
    json: Json = False,
) -> None:
    """Run the sidecar, which refreshes all stream tables.

    It stops on Ctrl-C or SIGTERM, after the running refreshes. Any number of sidecars can serve a database.
    `--json` is short for `--log-format json`.
    """
    began = time.monotonic()
    spark_settings = spark_settings_of(spark_conf or [])
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
        http=http,
        http_token_file=http_token_file,
        http_host=http_host,
        http_dsn=http_dsn,
        log_level=log_level,
        log_format=LogFormat.JSON if json else log_format,
        traces=traces,
    )
    log = SidecarLog(settings.log_level, settings.log_format)
    with open_installed(dsn) as connection:
        check_writable(connection)
        check_may_serve(connection)
        check_original(connection)
        where = f"{connection.info.dbname} at {connection.info.host or 'the local socket'}"
    if not spark_master.startswith("sc://"):
        require_java()
    # before Spark starts, so that a wrong setting is reported immediately
    pool = Pool(dsn, max_connections, pooler)
    way = "through a pooler" if pool.is_pooled else "directly"
    pool.close()
    server = open_server(settings, log)
    settings = replace(settings, pooler=Pooling.YES if pool.is_pooled else Pooling.NO)
    log.announce(
        f"Serving the stream tables of {where}, connected {way},"
        f" with at most {max_connections} connections. Press Ctrl-C to stop."
    )
    from pgtrickle.commands.engine import build_engine

    start = _SparkStart(settings, spark_settings, began, log)
    engine = build_engine(settings, start)
    try:
        _serve(engine, settings, start, log, server)
    finally:
        if server is not None:
            server.stop()
        engine.close()
    log.announce("Stopped.")


@dataclass(slots=True)
class _SparkStart:
    """Starts Spark and reports how far it is; called again after Spark has died."""

    settings: Settings
    spark_settings: dict[str, str]
    began: float
    log: SidecarLog
    is_ready: bool = False

    def __call__(self) -> Spark:
        # we report a dead JVM ourselves, and only once
        logging.getLogger().addFilter(lambda record: record.msg != "Exception while sending command.")
        is_first = not self.is_ready
        if is_first:
            self.log.announce(
                f"Warming up: Spark on {self.settings.spark_master} is starting."
                " Refreshes that need no Spark already run."
            )
        from pgtrickle.pipeline.session import open_spark

        spark = open_spark(
            self.settings.spark_master,
            configuration=self.spark_settings,
            cache_directory=self.settings.cache_directory(os.environ),
        )
        spark.warm()
        threading.Thread(target=_warm_further, args=(spark,), name="spark warming", daemon=True).start()
        if is_first:
            self.is_ready = True
            why_jobs = spark.programs.why_jobs
            self.log.announce(
                f"Ready after {time.monotonic() - self.began:.1f} s. Small changes are computed"
                f" {'in place' if why_jobs is None else f'as Spark jobs, because {why_jobs}'}."
            )
        return spark


def _warm_further(spark: Spark) -> None:
    # it fails if Spark is stopped meanwhile, and nothing depends on it
    with suppress(Exception):
        spark.warm_further()


def _serve(
    engine: Engine, settings: Settings, start: _SparkStart, log: SidecarLog, server: HttpServer | None
) -> None:
    """Run the scheduler in its own thread, so that this one can handle signals."""
    from pgtrickle.commands.run import run as run_with

    stop = threading.Event()
    failures: list[BaseException] = []

    def loop() -> None:
        try:
            run_with(engine, stop, both(log, server), settings, server.watch if server is not None else None)
        except BaseException as failure:
            failures.append(failure)

    _stop_on_signals(stop, start, log)
    if server is not None:
        server.start(engine)
    # a daemon, because the process must end even if the scheduler hangs
    thread = threading.Thread(target=loop, name="sidecar", daemon=True)
    thread.start()
    while thread.is_alive() and not stop.is_set():
        try:
            thread.join(POLL_SECONDS)
        except (KeyboardInterrupt, SystemExit):
            # it ends by itself; without its connections it would report errors
            thread.join(1.0)
            raise
        if engine.supply.failed_start is not None and not start.is_ready:
            failures.append(engine.supply.failed_start)
            stop.set()
    thread.join(settings.stop_timeout)
    if thread.is_alive():
        log.announce(
            f"Cancelling the refreshes that still run after {settings.stop_timeout:g} s.", LogLevel.WARNING
        )
        cancel_refreshes(lambda: engine, thread)
    elif failures:
        raise failures[0]


def _stop_on_signals(stop: threading.Event, start: _SparkStart, log: SidecarLog) -> None:
    """Finish the running refreshes at the first signal; stop at once at the second, which loses nothing.

    While Spark starts, the first signal stops at once.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.is_set() or not start.is_ready:
            stop.set()
            if number == signal.SIGINT:
                raise KeyboardInterrupt
            sys.exit(128 + number)
        log.announce("Stopping after the running refreshes. Press Ctrl-C again to stop now.")
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handle)
