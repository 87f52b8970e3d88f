"""A query cannot make Spark give away what the process of the sidecar knows, nor run other code."""

from __future__ import annotations

import os
import stat

import psycopg
import pytest

from pgtrickle.pipeline.session import Spark

TEXTS = (
    "${env:HOME}",
    "${system:java.io.tmpdir}",
    "${spark.app.name}",
    'a") or reflect("java.lang.System", "getenv", "HOME") is not null or ("" = "',
    "`; {0} {x} %s $1 :x ? -- /* */",
)
"""Spark replaces the first three in any SQL text unless it is told not to."""


@pytest.fixture
def joined(source):
    """Two tables whose join Spark computes."""
    source("a(id int primary key, x int)", [(1, 1)])
    return source("b(id int primary key, y int, w text)", [(1, 2, "b")])


def test_texts_and_names_mean_themselves_to_spark(joined, stream_table):
    """A key that is grouped by, and depends on two tables, is computed by Spark and stored."""
    texts = ", ".join(
        f"case when a.x < b.y then {psycopg.sql.quote(text)} else b.w end as"
        f' "{number} {text.replace(chr(34), chr(34) * 2)[:40]}"'
        for number, text in enumerate(TEXTS)
    )
    numbers = ", ".join(str(number + 1) for number in range(len(TEXTS)))
    query = f"select {texts}, count(*) from a join b on a.id = b.id group by {numbers}"
    table = stream_table(query, mode="DIFFERENTIAL")
    joined.change("insert into a values (2, 0)", "insert into b values (2, 1, 'x')")
    table.refresh()
    table.equals_its_query()


def test_files_of_spark_are_for_its_owner_alone(spark: Spark):
    assert spark._launched is not None
    assert not os.stat(spark._launched.directory).st_mode & (stat.S_IRWXG | stat.S_IRWXO)
