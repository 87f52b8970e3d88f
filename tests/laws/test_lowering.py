"""The law of lowering: the SQL that Spark runs gives both ends as the laws compute them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pgtrickle.changes.inputs import weighted_input
from pgtrickle.changes.read import fields_of, has_weight
from pgtrickle.plan.operators import Answer, Leaf
from pgtrickle.plan.passes.bind import Binding
from pgtrickle.plan.passes.bind.reads import inputs_of
from pgtrickle.plan.passes.spark_sql import change_sql, input_sql, spark_sql
from pgtrickle.plan.reads import AGAIN, WEIGHT, Read, Role
from pgtrickle.plan.rules import RULES
from pgtrickle.plan.rules.needs import EVERYTHING
from pgtrickle.postgres.arrow import arrow_schema
from tests.fixtures.lanes import examples
from tests.laws.checking import GIVEN, clocked, truths
from tests.laws.ends import LOWERINGS, Rows, both_ends, change, end
from tests.laws.needs import needs
from tests.laws.reading import Reader, Table, remembered
from tests.laws.sources import supersets, used, worlds
from tests.laws.trees import trees
from tests.laws.zsets import minus


def test_the_laws_know_every_operator_that_spark_computes():
    assert {*LOWERINGS, Leaf, Answer} == {kind for kind, rule in RULES.items() if rule.spark_sql}


@settings(max_examples=examples(50), deadline=None)
@given(op=trees(), is_first=st.booleans(), changed=supersets)
def test_a_weight_is_taken_of_the_reads_that_have_one(op, is_first, changed):
    bound, reads = Binding(changed).program(op, (EVERYTHING,) if is_first else ())
    roles = dict(pair for one in inputs_of(bound) for pair in one.reads)
    for read in reads:
        if read.name in roles:
            assert has_weight(read) == (roles[read.name] in {Role.CHANGE, Role.BOTH})


def arrow(read: Read, table: Table) -> pa.Table:
    """What a read gave, as Arrow."""
    schema = arrow_schema(fields_of(read), has_weight=has_weight(read))
    places = {name: number for number, name in enumerate((*table.names, WEIGHT, AGAIN))}
    listed = [(*row, weight, is_again) for row, weight, is_again in table.found]
    columns = [pa.array([row[places[f.name]] for row in listed], f.type) for f in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def listed(found: pa.Table) -> Rows:
    """Rows with two weights, as Spark gave them."""
    columns = [column.to_pylist() for column in found.columns]
    return [((tuple(values[:-2])), (values[-2], values[-1])) for values in zip(*columns, strict=True)]


law = settings(
    max_examples=examples(40),
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
shown = trees(size=3).filter(lambda op: bool(op.columns))


@pytest.mark.slow
@law
@given(data=st.data(), op=shown)
def test_spark_gives_both_ends_as_the_laws_compute_them(spark, data, op):
    from pgtrickle.pipeline.small import run_small

    world, needed = data.draw(worlds(used(op))), data.draw(needs(op))
    truths(op, world)
    with remembered() as queries:
        bound, reads = Binding(world.changed | clocked(op)).program(op, needed.wants)
    tables = Reader(world, queries, tables={GIVEN: needed.table}).read_all(reads)
    rows = both_ends(bound, tables)
    held = {read.name: arrow(read, tables[read.name]) for read in reads}
    inputs = {one.name: weighted_input(one, held) for one in inputs_of(bound)}
    found = listed(run_small(spark, spark_sql(bound), inputs))
    assert [end(found, number) for number in (0, 1)] == [end(rows, number) for number in (0, 1)]
    net = run_small(spark, change_sql(bound), inputs).to_pylist()
    assert {tuple(row.values())[:-1]: row[WEIGHT] for row in net} == dict(change(rows))


@pytest.mark.slow
@law
@given(data=st.data(), op=shown)
def test_spark_gives_the_same_over_the_reads_themselves(spark, data, op):
    from pgtrickle.pipeline.small import run_small

    world = data.draw(worlds(used(op)))
    was, now = truths(op, world)
    with remembered() as queries:
        bound, reads = Binding(world.changed | clocked(op)).program(op)
    tables = Reader(world, queries, is_whole=True).read_all(reads)
    taken = {name for one in inputs_of(bound) for name, _ in one.reads}
    held = {read.name: arrow(read, tables[read.name]) for read in reads if read.name in taken}
    inputs = ", ".join(f"{one.name} as ({input_sql(one)})" for one in inputs_of(bound))
    sql = f"with {inputs} {change_sql(bound)}" if inputs else change_sql(bound)
    net = run_small(spark, sql, held).to_pylist()
    assert {tuple(row.values())[:-1]: row[WEIGHT] for row in net} == dict(minus(now, was))
