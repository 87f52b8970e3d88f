"""The law of lowering: the SQL that Spark runs gives what the operators say."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pgtrickle.plan.deltas import versions_of

from pgtrickle.plan.lowering.spark import folded as folded_sql
from pgtrickle.plan.program import WEIGHT, Read, ReadKind
from pgtrickle.plan.restriction import Binding
from pgtrickle.postgres.arrow import arrow_schema
from tests.laws import trees
from tests.laws.reading import read_all
from tests.laws.zsets import Row, World, evaluated, folded

pytestmark = pytest.mark.slow
law = settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def table(read: Read, world: World) -> pa.Table:
    """The rows of a read as Arrow: with a weight those of a change, each copy by itself the others."""
    has_weight = read.kind is ReadKind.CHANGES
    rows = world.reads[read.name]
    listed: list[Row] = [(*row, w) for row, w in rows.items()] if has_weight else list(rows.elements())
    schema = arrow_schema(read.fields, has_weight=has_weight)
    arrays = [pa.array([row[i] for row in listed], field.type) for i, field in enumerate(schema)]
    return pa.Table.from_arrays(arrays, schema=schema)


def weighted(found: pa.Table) -> Counter[tuple[Any, ...]]:
    values = [found[name].to_pylist() for name in found.column_names if name != WEIGHT]
    rows = list(zip(*values, strict=True)) if values else [()] * len(found)
    return Counter(dict(zip(rows, found[WEIGHT].to_pylist(), strict=True)))


@law
@given(op=trees.trees(depth=3), world=trees.worlds(), is_first=st.booleans())
def test_spark_gives_what_the_operators_say(spark, op, world, is_first):
    from pgtrickle.pipeline.small import run_small

    rows = op if is_first else versions_of(op, world.changed).delta
    if rows is None or not op.columns:
        return
    binding = Binding()
    bound = binding.bound(rows)
    restricted = read_all(tuple(binding.reads), world)
    inputs = {read.name: table(read, restricted) for read in binding.reads}
    found = weighted(run_small(spark, folded_sql(bound), inputs))
    assert found == folded(evaluated(rows, world))
