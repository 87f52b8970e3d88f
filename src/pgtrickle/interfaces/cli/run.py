"""The command `run`: the sidecar."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pgtrickle.catalog.install import check_may_serve, check_original
from pgtrickle.commands.connections import open_installed
from pgtrickle.commands.databases import served_databases
from pgtrickle.interfaces.background import POLL_SECONDS, cancel_refreshes
from pgtrickle.interfaces.cli.http_server import open_server
from pgtrickle.interfaces.cli.log_lines import SidecarLog
from pgtrickle.interfaces.cli.options import (
    CacheEntries,
    ConfigFile,
    CpuShare,
    Discover,
    Dsns,
    EnableRefreshBroker,
    Http,
    HttpDsn,
    HttpHost,
    HttpTokenFile,
    IdleAfter,
    Json,
    ListenDsn,
    LogFormatOption,
    LogLevelOption,
    Master,
    MaxConnections,
    MaxDatabases,
    MaxErrors,
    MemoryLimit,
    PathOption,
    PoolerOption,
    RefreshTimeout,
    StopTimeout,
    TaskDsn,
    TempFileLimit,
    Traces,
    Workers,
)
from pgtrickle.interfaces.cli.priority import yield_to_others
from pgtrickle.interfaces.cli.run_many import serve_many
from pgtrickle.interfaces.cli.secrecy import given_addresses
from pgtrickle.interfaces.cli.spark_options import SparkConf, spark_settings_of
from pgtrickle.interfaces.cli.spark_start import SparkStart, stop_on_signals
from pgtrickle.interfaces.http.server import HttpServer, both
from pgtrickle.model.settings import LogFormat, LogLevel, Pooling, Settings, SparkPath, read_settings
from pgtrickle.pipeline.java import require_java
from pgtrickle.postgres.connection import check_writable
from pgtrickle.postgres.pool import Pool

if TYPE_CHECKING:
    from pgtrickle.refresh.engine import Engine

DEFAULTS: Final = Settings()


def run(
    dsn: Dsns = None,
    config: ConfigFile = None,
    discover: Discover = DEFAULTS.discover,
    enable_refresh_broker: EnableRefreshBroker = DEFAULTS.enable_refresh_broker,
    max_databases: MaxDatabases = DEFAULTS.max_databases,
    idle_after: IdleAfter = DEFAULTS.idle_after,
    spark_master: Master = "local[*]",
    spark_conf: SparkConf = None,
    task_dsn: TaskDsn = None,
    path: PathOption = SparkPath.AUTO,
    max_consecutive_errors: MaxErrors = DEFAULTS.max_consecutive_errors,
    pooler: PoolerOption = Pooling.AUTO,
    max_connections: MaxConnections = DEFAULTS.max_connections,
    memory_limit: MemoryLimit = None,
    worker_pool_size: Workers = DEFAULTS.worker_pool_size,
    cpu_share: CpuShare = None,
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

    It stops on Ctrl-C or SIGTERM, after the running refreshes. Any number of sidecars can serve a database,
    and one sidecar can serve many: give --dsn several times, --config or --discover. `--json` is short for
    `--log-format json`.
    """
    began = time.monotonic()
    addresses = given_addresses(dsn, os.environ)
    spark_settings = spark_settings_of(spark_conf or [])
    settings = read_settings(
        os.environ,
        dsn=addresses[0] if addresses else None,
        config=config,
        discover=discover,
        enable_refresh_broker=enable_refresh_broker,
        max_databases=max_databases,
        idle_after=idle_after,
        spark_master=spark_master,
        task_dsn=task_dsn,
        path=path,
        max_consecutive_errors=max_consecutive_errors,
        pooler=pooler,
        max_connections=max_connections,
        memory_limit=memory_limit,
        worker_pool_size=worker_pool_size,
        cpu_share=cpu_share,
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
    yield_to_others(settings)
    databases = served_databases(settings, addresses, os.environ)
    if not databases.is_single:
        _require_java(settings)
        serve_many(settings, databases, SparkStart(settings, spark_settings, began, log), log)
        log.announce("Stopped.")
        return
    (database,) = databases.databases
    settings = replace(
        settings,
        dsn=database.dsn,
        listen_dsn=database.listen_dsn,
        pooler=database.pooler or settings.pooler,
        max_connections=database.max_connections or settings.max_connections,
    )
    with open_installed(settings.dsn) as connection:
        check_writable(connection)
        check_may_serve(connection)
        check_original(connection)
        where = f"{connection.info.dbname} at {connection.info.host or 'the local socket'}"
    _require_java(settings)
    # before Spark starts, so that a wrong setting is reported immediately
    pool = Pool(settings.dsn, settings.max_connections, settings.pooler)
    way = "through a pooler" if pool.is_pooled else "directly"
    pool.close()
    server = open_server(settings, log)
    settings = replace(settings, pooler=Pooling.YES if pool.is_pooled else Pooling.NO)
    log.announce(
        f"Serving the stream tables of {where}, connected {way},"
        f" with at most {settings.max_connections} connections. Press Ctrl-C to stop."
    )
    from pgtrickle.commands.engine import build_engine

    start = SparkStart(settings, spark_settings, began, log)
    engine = build_engine(settings, start)
    try:
        _serve(engine, settings, start, log, server)
    finally:
        if server is not None:
            server.stop()
        engine.close()
    log.announce("Stopped.")


def _require_java(settings: Settings) -> None:
    if not settings.spark_master.startswith("sc://"):
        require_java()


def _serve(
    engine: Engine, settings: Settings, start: SparkStart, log: SidecarLog, server: HttpServer | None
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

    stop_on_signals(stop, start, log)
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
