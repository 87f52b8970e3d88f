"""Fixtures of the pipeline's tests: a staging table, and a source that tasks read."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import psycopg
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pgtrickle.pipeline import programs as caching
from pgtrickle.pipeline.distributed import StagingTarget
from pgtrickle.pipeline.jvm.cached_plan import CachedPlan, plan_in_driver
from pgtrickle.pipeline.jvm.driver_execution import DriverExecution

Staging = Callable[[str], StagingTarget]


@pytest.fixture
def staging(connection: psycopg.Connection, dsn: str) -> Staging:
    """Creates a staging table with these columns."""

    def create(columns: str) -> StagingTarget:
        connection.execute("create schema if not exists pgtrickle_state")
        connection.execute(
            f"create unlogged table pgtrickle_state.staged (run bigint, part int, attempt bigint, {columns})"
        )
        connection.commit()
        return StagingTarget(dsn, "staged", run=7)

    return create


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The programs that have been planned since, to be kept."""
    programs: list[str] = []

    def plan(
        session: SparkSession, execution: DriverExecution, spark_sql: str, inputs: Mapping[str, pa.Table]
    ) -> CachedPlan:
        programs.append(spark_sql)
        return plan_in_driver(session, execution, spark_sql, inputs)

    monkeypatch.setattr(caching, "plan_in_driver", plan)
    return programs


@pytest.fixture
def numbers(connection: psycopg.Connection) -> str:
    """A table of the product's role with 50,000 rows on many pages."""
    connection.execute("create schema if not exists pgtrickle_state")
    connection.execute(
        "create table pgtrickle_state.numbers as select g::int as n, 'number ' || g as name"
        " from generate_series(1, 50000) g"
    )
    connection.commit()
    return "pgtrickle_state.numbers"
