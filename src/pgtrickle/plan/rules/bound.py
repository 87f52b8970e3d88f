"""The leaves of a bound plan: rows that were read of a source, rows that PostgreSQL answered, and no rows.

w(row) = as the reads say, at both ends

Only a bound plan has them, so the questions that come before binding have the most careful answer.
"""

from __future__ import annotations

from dataclasses import replace

from pgtrickle.model.names import quoted
from pgtrickle.plan.lowering.postgres_text import no_rows
from pgtrickle.plan.lowering.spark_text import WEIGHTS, names_list, typed_nulls
from pgtrickle.plan.operators import Answer, InputLeaf, Leaf, Nothing, Scan
from pgtrickle.plan.reads import KeyColumns
from pgtrickle.plan.rules import absent
from pgtrickle.plan.rules.kind import RuleKind
from pgtrickle.plan.rules.provenance import FindReads, HeldBy, own_columns
from pgtrickle.plan.rules.rule import LowerToPostgres, LowerToSpark, Names, Rule


def relation_name(scan: Scan) -> str:
    """The name by which PostgreSQL's SQL refers to what was read of a scan."""
    return quoted(f"rows of {scan.alias}")


def input_rows(op: InputLeaf, needed: Names | None, lower: LowerToSpark) -> str:
    return f"select {names_list(op.columns)}{WEIGHTS} from {op.input.name}"


def leaf_reads(op: Leaf, columns: tuple[str, ...], find_reads: FindReads) -> HeldBy:
    reads = (op.change, *op.rows) if op.change else op.rows
    return tuple(KeyColumns(read.name, columns) for read in reads)


def answer_reads(op: Answer, columns: tuple[str, ...], find_reads: FindReads) -> HeldBy:
    return tuple(KeyColumns(read.name, columns) for read, _ in op.reads)


def answer_query(op: Answer, lower: LowerToPostgres) -> str:
    """Inside another answer only constants are answers: the query that reads no part."""
    ((read, _),) = op.reads
    assert read.query is not None
    return read.query


def nothing_sql(op: Nothing, needed: Names | None, lower: LowerToSpark) -> str:
    return f"select {typed_nulls(op.columns)}0L as w0, 0L as w1 where false"


LEAF = Rule(
    label=lambda op: f"rows read of {op.scan.alias}",
    kind=lambda op: RuleKind.LINEAR,
    bind=absent.nothing_to_bind,
    spark_sql=input_rows,
    obstacle=absent.no_obstacle,
    postgres_sql=lambda op, lower: f"select * from {relation_name(op.scan)}",
    places=own_columns,
    open_children=absent.no_open_children,
    held_by=leaf_reads,
    is_nullable=absent.any_nullable,
    is_unique=absent.never_unique,
    row_key=absent.no_row_key,
    groups=absent.no_groups,
    prune=absent.nothing_to_prune,
    push=absent.push_nothing,
    tighten=absent.tighten_nothing,
    expressions=absent.no_expressions,
    spark_expressions=absent.no_spark_expressions,
    early_stops=absent.same_stop,
    has_one_row=absent.any_number_of_rows,
    group_child=absent.no_group_child,
    widened_child=absent.no_widened_child,
    conditions=absent.no_conditions,
    endless_part=absent.no_endless_part,
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
