"""Reading a large table into Spark: our tasks against Spark's own JDBC reader."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame, SparkSession

from bench.figures import Figure, at_least, ratio
from bench.shop import make_orders
from bench.stage import JDBC_DRIVER, Stage
from bench.timing import milliseconds
from pgtrickle.model.carrier import Carrier, Field
from pgtrickle.model.source import Source, SourceColumn
from pgtrickle.model.stream_table import RelationId
from pgtrickle.pipeline.ranges import ctid_ranges
from pgtrickle.pipeline.session import Spark
from pgtrickle.pipeline.source import PartitionedQuery
from pgtrickle.plan.carriers import carrier_of, decimal
from pgtrickle.postgres.introspect import describe_sources
from pgtrickle.refresh.execute.staging import PARTS
from tests.fixtures.snapshots import Snapshot, open_snapshot

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
                SPLIT: lambda: _jdbc(spark.large, place.dsn, _by_key(count)),
            }
            for side in sides.values():
                assert side().count() == count
            rates = _rates(sides, count, stage.sizes.long_rounds)
    return [
        ratio(_what(WHOLE), OURS, WHOLE, rates, at_least(1.7), unit="rows/s"),
        ratio(_what(SPLIT), OURS, SPLIT, rates, at_least(1), unit="rows/s"),
    ]


def _rates(sides: dict[str, Callable[[], DataFrame]], count: int, rounds: int) -> dict[str, list[float]]:
    """Rows per second of each side, in turns; the first round warms up."""
    rates: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(1 + rounds):
        for name, side in sides.items():
            took = milliseconds(partial(_read, side))
            if number:
                rates[name].append(count / took * 1000)
    return rates


def _read(side: Callable[[], DataFrame]) -> None:
    side().write.format("noop").mode("overwrite").save()


def _ours(spark: Spark, dsn: str, snapshot: Snapshot, source: Source) -> DataFrame:
    carriers = {column.name: _carrier(column) for column in source.columns}
    values = ", ".join(carrier.carry_sql(f"t.{name}") for name, carrier in carriers.items())
    parts = ctid_ranges(snapshot.connection, source, PARTS)
    queries = tuple(f"select {values} from orders t where {part}" for part in parts)
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


def _by_key(count: int) -> dict[str, str]:
    bounds = {"partitionColumn": "id", "lowerBound": "1", "upperBound": str(count)}
    return {**bounds, "numPartitions": str(PARTS)}


def _what(rival: str) -> str:
    split = "by key" if rival == SPLIT else "unpartitioned"
    return f"rows per second of a distributed read ÷ Spark's JDBC reader, {split}"


def _missing(rival: str) -> Figure:
    return Figure(
        _what(rival), None, note=f"skipped: without {JDBC_DRIVER} (apt install libpostgresql-jdbc-java)"
    )
