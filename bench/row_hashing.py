"""A row's hash of its typed values, as refreshes use it, against the hash of a text made of them."""

from __future__ import annotations

from typing import Final

from bench.figures import Figure, Samples, at_most, ratio
from bench.stage import Place, Stage
from bench.timing import milliseconds

TYPED, TEXT = "typed values", "text"
_COLUMNS: Final = "id, customer, amount, status, placed_at"
_IN_POSTGRES: Final = {
    TYPED: f"select count(hash_record_extended(row({_COLUMNS}), 0)) from hashed",
    TEXT: f"select count(md5(concat_ws('|', {_COLUMNS}))) from hashed",
}
_IN_SPARK: Final = {
    TYPED: f"select max(xxhash64({_COLUMNS})) from hashed",
    TEXT: f"select max(xxhash64(concat_ws('|', {_COLUMNS}))) from hashed",
}


def row_hashing(stage: Stage) -> list[Figure]:
    """The same rows on both sides, in PostgreSQL and in Spark."""
    with stage.database("row_hashing") as place:
        _make(place, stage.sizes.few_orders * 5)
        in_postgres = _in_postgres(place, stage.sizes.long_rounds)
    in_spark = _in_spark(stage)
    return [
        ratio("row hash in PostgreSQL: typed ÷ text", TYPED, TEXT, in_postgres, at_most(1), unit="ms"),
        ratio("row hash in Spark: typed ÷ text", TYPED, TEXT, in_spark, at_most(1), unit="ms"),
    ]


def _make(place: Place, rows: int) -> None:
    place.connection.execute(
        "create table hashed as select n as id, (n * 7919 % 10000)::int as customer,"
        " ((n * 31 % 100000) / 100.0)::numeric(12, 2) as amount, 'placed'::text as status,"
        " timestamptz '2025-01-01' + n * interval '1 second' as placed_at"
        f" from generate_series(1::bigint, {rows}) n"
    )
    place.settle()


def _in_postgres(place: Place, rounds: int) -> Samples:
    samples: dict[str, list[float]] = {TYPED: [], TEXT: []}
    for number in range(rounds + 1):
        for side, statement in _IN_POSTGRES.items():
            took = milliseconds(lambda statement=statement: place.connection.execute(statement))  # type: ignore[misc]
            if number:
                samples[side].append(took)
    return samples


def _in_spark(stage: Stage) -> Samples:
    """In the session of large windows; the one of small ones never has rows enough to measure."""
    session, samples = stage.spark.large, dict[str, list[float]]({TYPED: [], TEXT: []})
    rows = session.range(stage.sizes.few_orders * 5).selectExpr(
        "id", "cast(id % 10000 as int) as customer", "cast(id % 100000 / 100.0 as decimal(12, 2)) as amount",
        "'placed' as status", "id * 1000000 as placed_at",
    )  # fmt: skip
    held = rows.cache()
    held.count()
    held.createOrReplaceTempView("hashed")
    try:
        for number in range(stage.sizes.long_rounds + 1):
            for side, statement in _IN_SPARK.items():
                took = milliseconds(lambda statement=statement: session.sql(statement).collect())  # type: ignore[misc]
                if number:
                    samples[side].append(took)
    finally:
        session.catalog.dropTempView("hashed")
        held.unpersist()
    return samples
