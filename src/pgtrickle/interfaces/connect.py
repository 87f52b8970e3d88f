"""`pgtrickle.connect`: opens a database from Python, with its own Spark unless one is given."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from pgtrickle.commands.connections import open_connection
from pgtrickle.interfaces.python import Trickle
from pgtrickle.model.settings import read_settings
from pgtrickle.postgres.pool import check_connection_limit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pgtrickle.pipeline.session import Spark


def connect(
    dsn: str = "",
    spark: SparkSession | Callable[[], SparkSession] | str | None = None,
    *,
    max_connections: int | None = None,
    pooler: str | None = None,
    memory_limit: int | str | None = None,
) -> Trickle:
    """Open the database at `dsn`. Without `dsn`, libpq's environment variables decide.

    `spark` is one of: an existing session, which stays running afterwards; a function that returns a
    session; the master to start a session on; or None. With a master or None, the first use starts a session
    in this process, which takes a few seconds. If Spark dies, a session that was started here is restarted,
    and a function is called again. An existing session cannot be restarted from here, so refreshes raise
    `SparkLost`. `max_connections` limits the connections of all refreshes and their Spark tasks together.
    `pooler` says whether `dsn` is the address of a pooler in transaction mode: `"yes"`, `"no"`, or `"auto"`
    to detect it. `memory_limit` is how much data the refreshes may hold at once, in bytes or as text such as
    `"512MB"`. Spark tasks compute a change that needs more. The default is an eighth of the heap of Spark's
    driver. Settings that are not given come from the environment; docs/CONFIGURATION.md lists them.

        with pgtrickle.connect("postgresql://me@localhost/shop") as trickle:
            trickle.install()
            trickle.create_stream_table("sales", "select region, sum(amount) from orders group by region")
            trickle.refresh("sales")
    """
    settings = read_settings(
        os.environ,
        dsn=dsn or None,
        max_connections=max_connections,
        pooler=pooler,
        memory_limit=str(memory_limit) if memory_limit is not None else None,
        spark_master=spark if isinstance(spark, str) else None,
    )
    check_connection_limit(settings.max_connections)
    with open_connection(settings.dsn):
        return Trickle(settings, lambda: _spark(spark, settings.spark_master))


def _spark(given: SparkSession | Callable[[], SparkSession] | str | None, master: str) -> Spark:
    from pgtrickle.pipeline.session import adopt, open_spark

    if given is None or isinstance(given, str):
        spark = open_spark(master)
        spark.warm()
        return spark
    return adopt(given() if callable(given) else given)
