"""Opening a database in Python, with a Spark of its own unless one is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from pgtrickle.commands.opening import connected
from pgtrickle.interfaces.environment import max_connections_of, memory_limit_of, pooling_of
from pgtrickle.interfaces.python import Trickle
from pgtrickle.postgres.pool import check_enough

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pgtrickle.pipeline.session import Spark

LOCAL: Final = "local[*]"


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
    Spark's driver. Without them, PGTRICKLE_MAX_CONNECTIONS, PGTRICKLE_POOLER and PGTRICKLE_MEMORY_LIMIT
    are asked.

        with pgtrickle.connect("postgresql://me@localhost/shop") as trickle:
            trickle.install()
            trickle.create_stream_table("sales", "select region, sum(amount) from orders group by region")
            trickle.refresh("sales")
    """
    most, pooling = max_connections_of(max_connections), pooling_of(pooler)
    check_enough(most)
    limit = memory_limit_of(memory_limit)
    with connected(dsn):
        return Trickle(dsn, lambda: _spark(spark), max_connections=most, pooling=pooling, memory_limit=limit)


def _spark(given: SparkSession | Callable[[], SparkSession] | str | None) -> Spark:
    from pgtrickle.pipeline.session import adopt, open_spark

    if given is None or isinstance(given, str):
        spark = open_spark(given or LOCAL)
        spark.warm()
        return spark
    return adopt(given() if callable(given) else given)
