"""The leaves of a bound plan: rows that were read of a source, rows that PostgreSQL answered, and no rows.

w(row) = as the reads say, at both ends

Only a bound plan has them, so the questions that come before binding have the most careful answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pgtrickle.model.names import quoted
from pgtrickle.plan.lowering.postgres_text import no_rows
from pgtrickle.plan.lowering.spark_text import WEIGHTS, names_list, typed_nulls
from pgtrickle.plan.operators import Answer, InputLeaf, Leaf, Nothing, Operator, Scan
from pgtrickle.plan.reads import KeyColumns
from pgtrickle.plan.rules.absent import (
    any_nullable,
    never_unique,
    no_expressions,
    no_groups,
    no_obstacle,
    no_open_children,
    no_row_key,
    no_spark_expressions,
    nothing_to_bind,
    nothing_to_prune,
    same_stop,
)
from pgtrickle.plan.rules.kind import Kind
from pgtrickle.plan.rules.provenance import FindReads, Holding, own_columns
from pgtrickle.plan.rules.rule import LowerToSpark, Names, Rule


def relation_name(scan: Scan) -> str:
    """The name by which PostgreSQL's SQL refers to what was read of a scan."""
    return quoted(f"rows of {scan.alias}")


def input_rows(op: InputLeaf, needed: Names | None, lower: LowerToSpark) -> str:
    return f"select {names_list(op.columns)}{WEIGHTS} from {op.input.name}"


def leaf_reads(op: Leaf, columns: tuple[str, ...], find_reads: FindReads) -> Holding:
    reads = (op.change, *op.rows) if op.change else op.rows
    return tuple(KeyColumns(read.name, columns) for read in reads)


def answer_reads(op: Answer, columns: tuple[str, ...], find_reads: FindReads) -> Holding:
    return tuple(KeyColumns(read.name, columns) for read, _ in op.reads)


def answer_query(op: Answer, lower: Callable[[Operator], str]) -> str:
    """Inside another answer only constants are answers: the query that reads no part."""
    ((read, _),) = op.reads
    assert read.query is not None
    return read.query


def nothing_sql(op: Nothing, needed: Names | None, lower: LowerToSpark) -> str:
    return f"select {typed_nulls(op.columns)}0L as w0, 0L as w1 where false"


LEAF = Rule(
    label=lambda op: f"rows read of {op.scan.alias}",
    kind=lambda op: Kind.LINEAR,
    bind=nothing_to_bind,
    spark_sql=input_rows,
    obstacle=no_obstacle,
    postgres_sql=lambda op, lower: f"select * from {relation_name(op.scan)}",
    places=own_columns,
    open_children=no_open_children,
    held_by=leaf_reads,
    is_nullable=any_nullable,
    is_unique=never_unique,
    row_key=no_row_key,
    groups=no_groups,
    prune=nothing_to_prune,
    expressions=no_expressions,
    spark_expressions=no_spark_expressions,
    early_stops=same_stop,
)

ANSWER = replace(
    LEAF,
    label=lambda op: "rows that PostgreSQL evaluated",
    postgres_sql=answer_query,
    held_by=answer_reads,
)

NOTHING = replace(
    LEAF,
    label=lambda op: "no rows",
    spark_sql=nothing_sql,
    postgres_sql=lambda op, lower: no_rows(op.columns),
    held_by=lambda op, columns, find_reads: (),
)
