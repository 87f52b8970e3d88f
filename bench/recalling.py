"""Where a compiled query comes from, and what that takes: compiler, catalog, files of the host, process."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bench.figures import Figure, Samples, at_most, ratio
from bench.shop import make_customers, make_orders, query
from bench.stage import Place, Stage
from bench.timing import milliseconds
from pgtrickle.catalog.tables import find
from pgtrickle.pipeline.session import Spark
from pgtrickle.refresh.compilation import compile_table
from pgtrickle.refresh.engine import Engine

COMPILER, CATALOG, HOST, PROCESS = "compiled", "from the catalog", "from the host", "from the process"
NAME: Final = "by_region"


def recalling(stage: Stage) -> list[Figure]:
    """One stream table; each round asks every level once, in engines that know nothing else."""
    with stage.database("recalling") as place, TemporaryDirectory() as directory:
        make_customers(place.connection)
        make_orders(place.connection, "orders", 1_000)
        place.trickle.create_stream_table(NAME, query("orders"), None)
        place.trickle.explain(NAME)
        samples = _measured(place, Path(directory) / "plans", stage.sizes.rounds)
        row = place.connection.execute(
            "select sum(octet_length(payload)) from pgtrickle.pgt_compiled"
        ).fetchone()
    size = int(row[0]) if row else 0
    return [
        ratio(
            "a known query in a new sidecar ÷ compiling it",
            CATALOG,
            COMPILER,
            samples,
            at_most(0.2),
            unit="ms",
        ),
        ratio("a known query from the host ÷ from the catalog", HOST, CATALOG, samples, None, unit="ms"),
        Figure("bytes of a compiled join with groups in the catalog", size, "bytes"),
    ]


def _measured(place: Place, directory: Path, rounds: int) -> Samples:
    samples: dict[str, list[float]] = {side: [] for side in (COMPILER, CATALOG, HOST, PROCESS)}
    warm = Engine(place.dsn, _no_spark, cache_directory=directory)
    _asked(warm)
    for _ in range(rounds):
        samples[COMPILER].append(_compiled(warm))
        samples[CATALOG].append(_asked(Engine(place.dsn, _no_spark)))
        samples[HOST].append(_asked(Engine(place.dsn, _no_spark, cache_directory=directory)))
        samples[PROCESS].append(_asked(warm))
    warm.close()
    return samples


def _compiled(engine: Engine) -> float:
    with engine.connection() as connection:
        table = find(connection, NAME)
        return milliseconds(lambda: compile_table(connection, table))


def _asked(engine: Engine) -> float:
    """How long the engine takes to have the compiled query; that it connects first is not part of it."""
    with engine.connection() as connection:
        table = find(connection, NAME)
        return milliseconds(lambda: engine.compilation(connection, table))


def _no_spark() -> Spark:
    raise AssertionError("to compile, nobody needs Spark")
