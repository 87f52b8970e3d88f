"""What measurements run on: PostgreSQL 18 with settings of a small server, and one warmed Spark."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import psycopg

import pgtrickle
from pgtrickle.catalog.tables import find
from pgtrickle.embedded import Server, bundled_binaries
from pgtrickle.interfaces.python import Trickle
from pgtrickle.model.settings import CACHE_DIR
from pgtrickle.model.stream_table import StreamTableId
from pgtrickle.pipeline.session import Spark, open_spark
from tests.tpch.published import NAMES

SETTINGS: Final = {
    "shared_buffers": "1GB",
    "fsync": "on",
    "max_connections": "60",
    # freshness is counted from commit to commit
    "track_commit_timestamp": "on",
}
JDBC_DRIVER: Final = Path("/usr/share/java/postgresql.jar")

Connection = psycopg.Connection[Any]


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured. `--quick` only shows that everything runs: its figures mean nothing."""

    orders: int = 1_000_000
    many_orders: int = 3_000_000
    most_orders: int = 10_000_000
    few_orders: int = 100_000
    changes: int = 1_000
    rounds: int = 30
    long_rounds: int = 5
    ticks: int = 200
    seconds: int = 5
    bulk: int = 10_000
    many_tables: tuple[int, int] = (1_000, 10_000)
    busy_tables: int = 1_000
    creations: int = 15
    chain: int = 10
    wide: int = 20
    chain_rounds: int = 20
    steady_tables: int = 200
    steady_sources: int = 10
    steady_seconds: int = 60
    beside_tables: int = 100
    tpch_scales: tuple[float, ...] = (0.1, 1.0)
    tpch_queries: tuple[str, ...] = NAMES
    tpch_rounds: int = 3
    auto_rounds: int = 3
    sustained_seconds: int = 20


QUICK: Final = Sizes(
    orders=20_000,
    many_orders=60_000,
    most_orders=80_000,
    few_orders=2_000,
    rounds=3,
    long_rounds=2,
    ticks=20,
    seconds=1,
    many_tables=(50, 100),
    busy_tables=20,
    creations=2,
    chain=3,
    wide=2,
    chain_rounds=2,
    steady_tables=8,
    steady_sources=2,
    steady_seconds=3,
    beside_tables=10,
    tpch_scales=(0.01, 0.02),
    tpch_rounds=1,
    auto_rounds=1,
    sustained_seconds=3,
)


@dataclass(frozen=True, slots=True)
class Stage:
    """A running server and a running Spark, shared by all measurements of a run."""

    server: Server
    spark: Spark
    sizes: Sizes

    @contextmanager
    def database(self, name: str) -> Iterator[Place]:
        """A new database with pgtrickle installed, gone afterwards, so that nobody disturbs the next."""
        with psycopg.connect(self.server.dsn(), autocommit=True) as admin:
            admin.execute(f'create database "{name}"')
            try:
                dsn = self.server.dsn(name)
                with (
                    pgtrickle.connect(dsn, self.spark.large) as trickle,
                    psycopg.connect(dsn, autocommit=True) as connection,
                ):
                    trickle.install()
                    yield Place(dsn, trickle, connection)
            finally:
                admin.execute(f'drop database "{name}" with (force)')


@dataclass(frozen=True, slots=True)
class Place:
    """One database: pgtrickle in this process, and a connection as the application has it."""

    dsn: str
    trickle: Trickle
    connection: Connection

    def id_of(self, name: str) -> StreamTableId:
        """The id by which the scheduler refreshes the stream table of that name."""
        with self.trickle.engine.connection() as connection:
            return find(connection, name).id

    def now(self) -> datetime:
        """The server's own clock."""
        row = self.connection.execute("select clock_timestamp()").fetchone()
        assert row is not None
        assert isinstance(row[0], datetime)
        return row[0]

    def settle(self) -> None:
        """Write out what loading left behind, so that it is not paid by what is measured next."""
        self.connection.execute("vacuum analyze")
        self.connection.execute("checkpoint")


@contextmanager
def stage(sizes: Sizes) -> Iterator[Stage]:
    """Start PostgreSQL and Spark; both stop, and their files go, at the end."""
    jars = {"spark.jars": str(JDBC_DRIVER)} if JDBC_DRIVER.exists() else {}
    with tempfile.TemporaryDirectory(prefix="pgtrickle-bench-") as directory:
        path = Path(directory)
        path.chmod(0o755)
        with (
            # compiled queries of a measurement are of no use to anybody else
            patch.dict(os.environ, {CACHE_DIR.variable: str(path / "compiled")}),
            Server(path / "server", bundled_binaries(), SETTINGS) as server,
            open_spark(configuration=jars) as spark,
        ):
            spark.warm()
            spark.warm_further()
            yield Stage(server, spark, sizes)
