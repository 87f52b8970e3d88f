"""The small path: a program in one partition, over rows that the driver already holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pgtrickle.changes.memory import TooMuch
from pgtrickle.model.errors import SparkFailed
from pgtrickle.pipeline.jvm.failures import JOB_FAILED, spark_failure
from pgtrickle.pipeline.names import bound, plain, quoted

if TYPE_CHECKING:
    from pgtrickle.pipeline.session import Spark

UNBOUNDED: Final = 1 << 62
_SPARK_TYPES: Final[dict[pa.DataType, str]] = {
    pa.bool_(): "boolean",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
}
WARMING_ROUNDS: Final = 2
"""The first round loads the classes, and takes three times as long as the second."""
FURTHER_ROUNDS: Final = 8
"""These only make the JVM compile more, and run beside refreshes."""
_WARMING_SQL: Final = """\
select r.name, sum(l.amount * l.weight) as amount, sum(l.weight * r.weight) as weight
from l left join r on l.id = r.id group by r.name having sum(l.weight) <> 0
union all select r.name, cast(null as decimal(38, 0)), -r.weight from r"""


def run_small(
    spark: Spark,
    spark_sql: str,
    inputs: Mapping[str, pa.Table],
    most: int = UNBOUNDED,
    *,
    keeps_plan: bool = True,
) -> pa.Table:
    """The rows of `spark_sql`, which reads the inputs by name; raises TooMuch past `most` bytes."""
    try:
        return spark.programs.run(spark_sql, inputs, most, keeps=keeps_plan)
    except Exception as failure:
        spark.check(failure)
        if isinstance(failure, JOB_FAILED):
            raise spark_failure(failure) from failure
        raise


def run_small_together(
    spark: Spark, programs: Sequence[tuple[str, Mapping[str, pa.Table]]], most: int = UNBOUNDED
) -> list[pa.Table | SparkFailed | TooMuch]:
    """The rows of each program, at most `most` bytes each, or its error; several are computed at once."""
    try:
        results = spark.programs.run_all(programs, most)
    except Exception as failure:
        spark.check(failure)
        raise
    for result in results:
        if isinstance(result, PySparkException):
            spark.check(result)
    return [spark_failure(result) if isinstance(result, PySparkException) else result for result in results]


def plan_small(session: SparkSession, spark_sql: str, inputs: Mapping[str, pa.Table]) -> DataFrame:
    """Plan the program as a frame without an exchange.

    Creating a frame from Arrow takes about thirty calls into the JVM, and a view several milliseconds more.
    So all inputs travel in one row, with a list of structs for each of them, and the program unfolds them. An
    empty input becomes an empty relation, which the optimizer removes together with the joins above it.
    """
    held = {name: rows for name, rows in inputs.items() if rows.num_rows}
    reads = {
        name: input_rows_sql(name) if name in held else _empty(rows.schema) for name, rows in inputs.items()
    }
    if not reads:
        return session.sql(spark_sql)
    frame = session.createDataFrame(pack_inputs(held)).coalesce(1) if held else None
    return session.sql(bound(spark_sql, reads), packed=frame)


def warm_small(spark: Spark, rounds: int) -> None:
    """Run the path of a small refresh a few times, so that the JVM loads and compiles its classes."""
    ids, ones = pa.array(range(200), pa.int32()), pa.array([1] * 200, pa.int64())
    left = pa.table({"id": ids, "amount": ids.cast(pa.decimal128(12, 0)), "weight": ones})
    right = pa.table({"id": ids, "name": ids.cast(pa.string()), "weight": ones})
    for _ in range(rounds):
        run_small(spark, _WARMING_SQL, {"l": left, "r": right}, keeps_plan=False)


def pack_inputs(inputs: Mapping[str, pa.Table]) -> pa.Table:
    """All inputs in one row."""
    return pa.table({name: _list_of_rows(rows) for name, rows in inputs.items()})


def _list_of_rows(rows: pa.Table) -> pa.Array:
    """The rows as one list of structs."""
    columns = [column.combine_chunks() for column in rows.columns]
    structs = pa.StructArray.from_arrays(columns, fields=list(rows.schema))
    return pa.ListArray.from_arrays(pa.array([0, len(structs)], pa.int32()), structs)


def input_rows_sql(name: str) -> str:
    """SQL for the rows of an input, read from the row in which it travels."""
    return f"select inline({plain(quoted(name))}) from {{packed}}"  # noqa: S608 (the name is quoted)


def _empty(schema: pa.Schema) -> str:
    nulls = (f"cast(null as {_spark_type(field.type)}) as {plain(quoted(field.name))}" for field in schema)
    return f"select {', '.join(nulls)} where false"


def _spark_type(arrow: pa.DataType) -> str:
    if pa.types.is_decimal(arrow):
        return f"decimal({arrow.precision},{arrow.scale})"
    return _SPARK_TYPES[arrow]
