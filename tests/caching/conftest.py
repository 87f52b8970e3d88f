"""Engines as further sidecars of the test's database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest

from pgtrickle.catalog.tables import find
from pgtrickle.pipeline.session import Spark
from pgtrickle.plan.limits import USUAL_LIMITS, QueryLimits
from pgtrickle.refresh.compilation import Compilation
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.prepare import prepare
from tests.fixtures.databases import TRICKLE, Database

Sidecars = Callable[..., Engine]
"""Called as `sidecar()`, or `sidecar(cache_directory=…)`: an engine that has compiled nothing yet."""


def _no_spark() -> Spark:
    raise AssertionError("to compile, nobody needs Spark")


@contextmanager
def _opened(engine: Engine) -> Iterator[Engine]:
    yield engine
    # its Spark, if it has one, belongs to the run
    engine._spark = None
    engine.close()


@pytest.fixture
def sidecar(database: Database) -> Iterator[Sidecars]:
    with ExitStack() as opened:

        def start(
            spark: Spark | None = None,
            *,
            max_entries: int = 256,
            cache_directory: Path | None = None,
            query_limits: QueryLimits = USUAL_LIMITS,
        ) -> Engine:
            engine = Engine(
                database.dsn(TRICKLE),
                (lambda: spark) if spark else _no_spark,
                template_cache_max_entries=max_entries,
                cache_directory=cache_directory,
                query_limits=query_limits,
            )
            return opened.enter_context(_opened(engine))

        yield start


Defined = Callable[..., str]
"""Called as `defined("select …")`: the name of a stream table that nobody has compiled or loaded yet."""


@pytest.fixture
def defined(app: psycopg.Connection) -> Defined:
    made = 0

    def define(query: str, mode: str = "AUTO") -> str:
        nonlocal made
        made += 1
        name = f"stream_{made}"
        with app.transaction():
            app.execute(
                "select pgtrickle.create_stream_table(%s, %s, schedule => null, refresh_mode => %s)",
                (name, query, mode),
            )
        return name

    return define


def compiled_by(engine: Engine, name: str) -> Compilation:
    """What the engine makes of a stream table's query before it refreshes it."""
    with engine.connection() as connection:
        table = find(connection, name)
    return prepare(engine, table.id).compilation


def counted(engine: Engine, *names: str) -> tuple[int, ...]:
    counters = engine.cache_counters()
    return tuple(counters[name] for name in names)
