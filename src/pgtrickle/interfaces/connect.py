"""`pgtrickle.connect`: opens a database from Python, with its own Spark unless one is given."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pgtrickle.commands.connections import open_connection
from pgtrickle.commands.databases import served_databases
from pgtrickle.interfaces.python import Trickle
from pgtrickle.model.settings import Settings, read_settings
from pgtrickle.postgres.pool import check_connection_limit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pgtrickle.pipeline.session import Spark


def connect(
    dsn: str = "",
    spark: SparkSession | Callable[[], SparkSession] | str | None = None,
    *,
    spark_conf: Mapping[str, str] | None = None,
    config: str | None = None,
    discover: bool | None = None,
    enable_refresh_broker: bool | None = None,
    max_databases: int | None = None,
    idle_after: float | None = None,
    listen_dsn: str | None = None,
    pooler: str | None = None,
    max_connections: int | None = None,
    task_dsn: str | None = None,
    path: str | None = None,
    memory_limit: int | str | None = None,
    worker_pool_size: int | None = None,
    cpu_share: float | None = None,
    max_consecutive_errors: int | None = None,
    refresh_timeout: float | None = None,
    temp_file_limit: str | None = None,
    stop_timeout: float | None = None,
    template_cache_max_entries: int | None = None,
    http: str | None = None,
    http_token_file: str | None = None,
    http_host: str | None = None,
    http_dsn: str | None = None,
    log_level: str | None = None,
    log_format: str | None = None,
    traces: bool | None = None,
) -> Trickle:
    """Open the database at `dsn`. Without `dsn`, `PGTRICKLE_DSN` and then libpq's variables decide.

    `spark` is one of: an existing session, which stays running afterwards; a function that returns a
    session; the master to start a session on, such as `"local[2]"`; or None for `PGTRICKLE_SPARK_MASTER` or
    `"local[*]"`. With a master or None, the first use starts a session in this process with the settings in
    `spark_conf`, which takes a few seconds. If Spark dies, a session that was started here is restarted, and
    a function is called again. An existing session cannot be restarted from here, so refreshes raise
    `SparkLost`.

    With `config`, a file with databases, or `discover`, `run` serves several databases. The other methods are
    about the database at `dsn`, or the first one of the file.

    The other arguments are the options of `pgtrickle run`. Those that are not given come from the
    environment, or have their default; docs/CONFIGURATION.md describes each of them.

    >>> trickle = pgtrickle.connect()
    >>> with pgtrickle.connect(max_connections=20, memory_limit="512MB") as other:
    ...     done = other.install()
    """
    settings = read_settings(
        os.environ,
        dsn=dsn or None,
        spark_master=spark if isinstance(spark, str) else None,
        config=config,
        discover=discover,
        enable_refresh_broker=enable_refresh_broker,
        max_databases=_text(max_databases),
        idle_after=_text(idle_after),
        listen_dsn=listen_dsn,
        pooler=pooler,
        max_connections=_text(max_connections),
        task_dsn=task_dsn,
        path=path,
        memory_limit=_text(memory_limit),
        worker_pool_size=_text(worker_pool_size),
        cpu_share=_text(cpu_share),
        max_consecutive_errors=_text(max_consecutive_errors),
        refresh_timeout=_text(refresh_timeout),
        temp_file_limit=temp_file_limit,
        stop_timeout=_text(stop_timeout),
        template_cache_max_entries=_text(template_cache_max_entries),
        http=http,
        http_token_file=http_token_file,
        http_host=http_host,
        http_dsn=http_dsn,
        log_level=log_level,
        log_format=log_format,
        traces=traces,
    )
    check_connection_limit(settings.max_connections)
    if settings.config is not None and not settings.dsn:
        first = served_databases(settings, (), os.environ).databases[:1]
        settings = replace(settings, dsn=first[0].dsn if first else "")
    with open_connection(settings.dsn):
        return Trickle(settings, lambda: _spark(spark, settings, spark_conf or {}))


def _text(value: int | float | str | None) -> str | None:
    """The value as text, which `read_settings` checks against the limits of its setting."""
    return None if value is None else str(value)


def _spark(
    given: SparkSession | Callable[[], SparkSession] | str | None,
    settings: Settings,
    spark_conf: Mapping[str, str],
) -> Spark:
    from pgtrickle.pipeline.session import adopt, open_spark

    if given is None or isinstance(given, str):
        spark = open_spark(
            settings.spark_master,
            configuration=dict(spark_conf),
            cache_directory=settings.cache_directory(os.environ),
        )
        spark.warm()
        return spark
    return adopt(given() if callable(given) else given)
