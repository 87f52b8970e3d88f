"""A process that dies below Spark is no failure of a stream table, unless one loses it every time."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pytest

from pgtrickle.model.errors import SparkLost
from pgtrickle.model.stream_table import StreamTableId
from pgtrickle.pipeline.supply import SparkSupply
from pgtrickle.pipeline.suspects import MOST_DEATHS

TABLE = StreamTableId(7)


def die(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    os.kill(os.getpid(), signal.SIGKILL)
    yield from batches


def test_a_python_worker_that_dies_leaves_spark_as_it_is_and_counts_against_who_lost_it(spark):
    supply = SparkSupply(lambda: spark)
    for deaths in range(1, MOST_DEATHS + 1):
        with (
            pytest.raises(SparkLost, match="Spark has lost a process") as raised,
            supply.computing(frozenset({TABLE})) as given,
        ):
            given.large.range(1).mapInArrow(die, "id bigint").collect()
        is_blamed = deaths == MOST_DEATHS
        assert raised.value.blamed == ({TABLE} if is_blamed else set())
        assert supply.is_isolated(TABLE) is is_blamed
    assert supply.get() is spark
    assert supply.deaths == 0
    assert spark.large.range(3).count() == 3
    supply.replace(None)
    supply.close()
