"""Tasks read their parts in one snapshot, and what they leave in staging counts once."""

from __future__ import annotations

import pytest

from pgtrickle.model.errors import SparkFailed
from pgtrickle.model.names import RelationName
from pgtrickle.model.source import Source, SourceKind
from pgtrickle.model.stream_table import RelationId
from pgtrickle.pipeline.distributed import plan_distributed, run_distributed
from pgtrickle.pipeline.ranges import ctid_ranges
from pgtrickle.pipeline.session import adopt
from pgtrickle.pipeline.small import run_small
from pgtrickle.pipeline.source import PartitionedQuery
from tests.fixtures.snapshots import open_snapshot
from tests.pipeline.relations import CUSTOMERS, ORDERS, TOTALS, field, rows_of

NUMBER = (field("n", "int"), field("name", "string"))


def source_named(connection, name: str) -> Source:
    relation = connection.execute("select %s::regclass::oid::bigint", (name,)).fetchone()[0]
    return Source(RelationId(relation), RelationName(*name.split(".")), SourceKind.TABLE, ())


def parts_of(snapshot, name: str, parts: int) -> PartitionedQuery:
    ranges = ctid_ranges(snapshot.connection, source_named(snapshot.connection, name), parts)
    queries = tuple(f"select t.n, t.name from {name} t where {condition}" for condition in ranges)
    return PartitionedQuery(queries, NUMBER, snapshot.id)


def winners(connection, staged, columns: str) -> list[tuple[object, ...]]:
    """The staged rows of the attempts that count."""
    return list(
        connection.execute(
            f"select {columns} from pgtrickle_state.staged where run = 7 and (part, attempt) in"
            " (select * from unnest(%s::int[], %s::bigint[]))",
            ([part for part, _ in staged.attempts], [attempt for _, attempt in staged.attempts]),
        )
    )


def test_both_paths_give_the_same_rows(spark, connection, staging):
    target = staging("region text, total numeric, weight bigint")
    inputs = {"o": ORDERS, "c": CUSTOMERS}
    staged = run_distributed(spark, TOTALS, inputs, target)
    small = run_small(spark, TOTALS, inputs)
    assert staged.rows == small.num_rows
    assert sorted(winners(connection, staged, "region, total, weight"), key=repr) == rows_of(small)


def test_engines_that_share_a_spark_read_side_by_side(spark, dsn, numbers):
    with open_snapshot(dsn) as snapshot:
        query = parts_of(snapshot, numbers, 2)
        for one in (spark, adopt(spark.large), adopt(spark.large)):
            assert one.sources.frame(dsn, query).count() == 50_000


def test_tasks_read_what_the_snapshot_sees(spark, dsn, connection, numbers, staging):
    target = staging("n bigint, total bigint")
    with open_snapshot(dsn) as snapshot:
        query = parts_of(snapshot, numbers, 3)
        assert len(query.queries) == 3
        connection.execute(f"delete from {numbers}")
        connection.commit()
        staged = run_distributed(spark, "select count(*) as n, sum(n) as total from t", {"t": query}, target)
    assert winners(connection, staged, "n, total") == [(50_000, 1_250_025_000)]


def test_reads_are_evaluated_under_the_given_settings(spark, dsn, connection, staging):
    target = staging("zone text")
    with open_snapshot(dsn) as snapshot:
        query = PartitionedQuery(
            ("select current_setting('TimeZone')",),
            (field("zone", "string"),),
            snapshot.id,
            (("TimeZone", "Asia/Kathmandu"),),
        )
        staged = run_distributed(spark, "select zone from t", {"t": query}, target)
    assert winners(connection, staged, "zone") == [("Asia/Kathmandu",)]


def test_the_password_is_in_no_plan(spark, dsn, numbers, capsys):
    with open_snapshot(dsn) as snapshot:
        frame = plan_distributed(spark, "select * from t", {"t": parts_of(snapshot, numbers, 2)}, dsn)
        frame.explain(extended=True)
        frame.explain(mode="formatted")
    shown = capsys.readouterr().out
    password = dsn.split("://")[1].split("@")[0].split(":")[1]
    assert "BatchScan" in shown
    assert password not in shown
    assert "postgresql://" not in shown


def test_a_failing_query_is_named_without_the_password(spark, dsn, staging):
    target = staging("n bigint")
    with open_snapshot(dsn) as snapshot:
        query = PartitionedQuery(("select 1 / 0",), (field("n", "int"),), snapshot.id)
        with pytest.raises(SparkFailed, match="division by zero") as error:
            run_distributed(spark, "select n from t", {"t": query}, target)
    assert dsn not in str(error.value)


@pytest.mark.parametrize("parts", [1, 2, 7, 1000])
def test_ranges_hold_every_row_once(connection, numbers, parts):
    ranges = ctid_ranges(connection, source_named(connection, numbers), parts)
    counts = [
        connection.execute(f"select count(*) from {numbers} t where {condition}").fetchone()[0]
        for condition in ranges
    ]
    assert sum(counts) == 50_000
    assert parts == 1000 or max(counts) < 1.5 * 50_000 / parts


def test_ranges_split_every_partition_alike(connection):
    name = "pgtrickle_state.parent"
    connection.execute("create schema if not exists pgtrickle_state")
    connection.execute(f"create table {name} (n int) partition by range (n)")
    for low, high in ((1, 20_001), (20_001, 50_001)):
        connection.execute(
            f"create table pgtrickle_state.part_{low} partition of {name} for values from ({low}) to ({high})"
        )
    connection.execute(f"insert into {name} select generate_series(1, 50000)")
    ranges = ctid_ranges(connection, source_named(connection, name), 4)
    assert len(ranges) == 4
    counts = [connection.execute(f"select count(*) from {name} t where {c}").fetchone()[0] for c in ranges]
    assert sum(counts) == 50_000


def test_an_empty_table_is_one_part(connection):
    connection.execute("create temp table nothing (n int)")
    relation = connection.execute("select 'nothing'::regclass::oid::bigint").fetchone()[0]
    source = Source(RelationId(relation), RelationName("pg_temp", "nothing"), SourceKind.TABLE, ())
    assert ctid_ranges(connection, source, 8) == ("true",)
