"""Fixtures of the pipeline's tests: a staging table, and a source that tasks read."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from pgtrickle.pipeline.distributed import StagingTarget

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
def numbers(connection: psycopg.Connection) -> str:
    """A table of the product's role with 50,000 rows on many pages."""
    connection.execute("create schema if not exists pgtrickle_state")
    connection.execute(
        "create table pgtrickle_state.numbers as select g::int as n, 'number ' || g as name"
        " from generate_series(1, 50000) g"
    )
    connection.commit()
    return "pgtrickle_state.numbers"
