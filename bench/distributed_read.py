"""Reading a large table into Spark: our tasks against Spark's own JDBC reader."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from urllib.parse import unquote, urlsplit

import psutil  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession

from bench.figures import Figure, at_least, ratio
from bench.shop import make_orders
from bench.stage import JDBC_DRIVER, Stage
from bench.timing import milliseconds
from pgtrickle.model.carrier import Carrier, Field
from pgtrickle.model.source import Source, SourceColumn
from pgtrickle.model.stream_table import RelationId
from pgtrickle.pipeline.ranges import page_ranges
from pgtrickle.pipeline.session import Spark
from pgtrickle.pipeline.source import PagedQuery, PartitionedQuery
from pgtrickle.plan.carriers import carrier_of, decimal
from pgtrickle.postgres.column_arrays import PAGES
from pgtrickle.postgres.introspect import describe_sources
from tests.fixtures.snapshots import Snapshot, open_snapshot

WARMING = 2
OURS, WHOLE, SPLIT = "ours", "JDBC", "JDBC by key"


def distributed_read(stage: Stage) -> list[Figure]:
    """All columns of all rows, as a first load reads them, into a sink that throws them away."""
    if not JDBC_DRIVER.exists():
        return [_missing(WHOLE), _missing(SPLIT)]
    count = stage.sizes.many_orders
    with stage.database("distributed_read") as place:
        make_orders(place.connection, "orders", count)
        place.settle()
        with open_snapshot(place.dsn) as snapshot:
            row = place.connection.execute("select 'orders'::regclass::oid::bigint").fetchone()
            assert row is not None
            relation = RelationId(row[0])
            source = describe_sources(snapshot.connection, [relation])[relation]
            spark = place.trickle.engine.spark
            sides: dict[str, Callable[[], DataFrame]] = {
                OURS: lambda: _ours(spark, place.dsn, snapshot, source),
                WHOLE: lambda: _jdbc(spark.large, place.dsn, {}),
                SPLIT: lambda: _jdbc(spark.large, place.dsn, _by_key(count, spark.slots)),
            }
            _check_same_rows(sides)
            rates, work = _measure(sides, count, stage)
    return [
        ratio(_what("rows per second", WHOLE), OURS, WHOLE, rates, at_least(2), unit="rows/s"),
        ratio(_what("rows per second", SPLIT), OURS, SPLIT, rates, at_least(1.2), unit="rows/s"),
        ratio(_what("rows per CPU second", WHOLE), OURS, WHOLE, work, at_least(1), unit="rows/s"),
        ratio(_what("rows per CPU second", SPLIT), OURS, SPLIT, work, at_least(1.2), unit="rows/s"),
    ]


def _check_same_rows(sides: dict[str, Callable[[], DataFrame]]) -> None:
    """Raise unless all sides read the same rows: a hash of each, summed up."""
    values = ("cast(id as bigint)", "customer", "cast(amount as decimal(12, 2))", "status")
    total = f"sum(cast(xxhash64({', '.join(values)}) as decimal(38, 0))) as hashes"
    found = [side().selectExpr("count(*) as n", total).collect() for side in sides.values()]
    assert all(one == found[0] for one in found)


def _measure(
    sides: dict[str, Callable[[], DataFrame]], count: int, stage: Stage
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Rows per second, and per second of processors, of each side in turns; the first two rounds warm up."""
    rates: dict[str, list[float]] = {name: [] for name in sides}
    work: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(WARMING + stage.sizes.long_rounds):
        for name, side in sides.items():
            before = _cpu_seconds(stage)
            took = milliseconds(partial(_read, side))
            if number >= WARMING:
                rates[name].append(count / took * 1000)
                work[name].append(count / (_cpu_seconds(stage) - before))
    return rates, work


def _cpu_seconds(stage: Stage) -> float:
    """The time that processors spent on PostgreSQL, Spark's JVM and its Python workers so far."""
    roots = [stage.server._process, stage.spark._process]
    total = 0.0
    for root in roots:
        assert root is not None
        process = psutil.Process(root.pid)
        # parents last: what a child that ends meanwhile has spent is then in its parent
        for one in (*reversed(process.children(recursive=True)), process):
            with suppress(psutil.NoSuchProcess):
                spent = one.cpu_times()
                total += spent.user + spent.system + spent.children_user + spent.children_system
    return total


def _read(side: Callable[[], DataFrame]) -> None:
    side().write.format("noop").mode("overwrite").save()


def _ours(spark: Spark, dsn: str, snapshot: Snapshot, source: Source) -> DataFrame:
    carriers = {column.name: _carrier(column) for column in source.columns}
    values = ", ".join(carrier.stored_sql(f"t.{name}") for name, carrier in carriers.items())
    found = page_ranges(snapshot.connection, source, spark.slots)
    text = f"select {values} from public.orders t where {PAGES}"
    assert found.step is not None
    queries = tuple(PagedQuery(text, pages, found.step) for pages in found.ranges)
    fields = tuple(Field(name, carrier) for name, carrier in carriers.items())
    return spark.sources.frame(dsn, PartitionedQuery(queries, fields, snapshot.id))


def _carrier(column: SourceColumn) -> Carrier:
    """As a query that computes with the column would have it carried."""
    scale = column.type.scale
    return carrier_of(column.type) if scale is None else decimal(column.type, scale)


def _jdbc(session: SparkSession, dsn: str, options: dict[str, str]) -> DataFrame:
    address = urlsplit(dsn)
    reader = session.read.format("jdbc").options(
        url=f"jdbc:postgresql://{address.hostname}:{address.port}{address.path}",
        user=address.username,
        password=unquote(address.password or ""),
        driver="org.postgresql.Driver",
        dbtable="orders",
    )
    return reader.options(**options).load()


def _by_key(count: int, parts: int) -> dict[str, str]:
    bounds = {"partitionColumn": "id", "lowerBound": "1", "upperBound": str(count)}
    return {**bounds, "numPartitions": str(parts)}


def _what(measure: str, rival: str) -> str:
    split = "by key" if rival == SPLIT else "unpartitioned"
    return f"{measure} of a distributed read ÷ Spark's JDBC reader, {split}"


def _missing(rival: str) -> Figure:
    return Figure(
        _what("rows per second", rival),
        None,
        note=f"skipped: without {JDBC_DRIVER} (apt install libpostgresql-jdbc-java)",
    )
