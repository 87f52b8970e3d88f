"""Opening a database in Python, with a Spark of its own unless one is given."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from pgtrickle.commands.connections import open_connection
from pgtrickle.interfaces.python import Trickle
from pgtrickle.model.settings import read_settings
from pgtrickle.postgres.pool import check_enough

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
    """Open the database at `dsn`; without one, where libpq's environment variables lead.

    `spark` is a session that you have (it is used and left running), a function that returns one, the
    master to start one on, or nothing: then one is started in this process when it is first needed, which
    takes some seconds. If Spark dies, one that was started here starts again by itself, and a function is
    called again; a session that was given cannot be started from here, so refreshes raise `SparkLost`.
    `max_connections` bounds the connections of refreshes and their Spark tasks together. `pooler` says
    whether `dsn` leads to a pooler in transaction mode: `"yes"`, `"no"`, or `"auto"`, which finds out.
    `memory_limit` is how much data the refreshes may hold at once, in bytes or as text such as `"512MB"`;
    a change that reaches more is computed in Spark's tasks. By default it is an eighth of the heap of
    Spark's driver. What is not given here comes from the environment, as docs/CONFIGURATION.md lists it.

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
    check_enough(settings.max_connections)
    with open_connection(settings.dsn):
        return Trickle(settings, lambda: _spark(spark, settings.spark_master))


def _spark(given: SparkSession | Callable[[], SparkSession] | str | None, master: str) -> Spark:
    from pgtrickle.pipeline.session import adopt, open_spark

    if given is None or isinstance(given, str):
        spark = open_spark(master)
        spark.warm()
        return spark
    return adopt(given() if callable(given) else given)
