"""Threshold: the rows on one side of a value that moves.

w(l) = w(l) at each end, if l compares so with the bound of the only row of the right at that end

Kind: bilinear. A changed row of the left needs the row of the right. A bound that moved needs the rows of the
left between where it was and where it is: all others are on the same side of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import replace

from sqlglot import exp

from pgtrickle.model.carrier import Field
from pgtrickle.model.names import quoted
from pgtrickle.plan.expressions import Expression, column
from pgtrickle.plan.lowering.exactness import comparable, spark_expression
from pgtrickle.plan.lowering.spark_text import names_list
from pgtrickle.plan.operators import Operator, Threshold
from pgtrickle.plan.rules import absent
from pgtrickle.plan.rules.kind import RuleKind
from pgtrickle.plan.rules.needs import Binder, Needs, unique_needs
from pgtrickle.plan.rules.pairs import any_pair
from pgtrickle.plan.rules.provenance import FIRST_CHILD, FindReads, HeldBy, same_columns
from pgtrickle.plan.rules.rule import (
    AskConditions,
    AskKey,
    AskNullable,
    AskUnique,
    LowerToPostgres,
    LowerToSpark,
    Names,
    Pruner,
    Restrict,
    Rule,
)

NODES: dict[str, type[exp.Binary]] = {"<": exp.LT, "<=": exp.LTE, ">": exp.GT, ">=": exp.GTE}
"""The node of each comparison."""


def label(op: Threshold) -> str:
    return f"threshold {op.compared} {op.comparison} {op.bound}"


def bind(op: Threshold, needs: Needs, binder: Binder) -> Operator:
    """The left that changed, is needed, or is passed by the bound; the bound, if there is anything of it."""
    key = Field(op.bound, op.right.column(op.bound).carrier)
    moved = binder.keys(op.right, (), [(op.compared, op.bound)], is_null_safe=False)
    of_left = unique_needs((*needs, *(need.between(op.comparison, key) for need in moved)))
    gates = binder.keys(op.left, of_left, [], is_null_safe=False)
    return op.with_children((binder.bind(op.left, of_left), binder.bind(op.right, gates)))


def comparison(op: Threshold) -> Expression:
    """What is true of the rows that are kept."""
    node = NODES[op.comparison](this=column(op.compared).node, expression=column(op.bound).node)
    return Expression(node)


def spark_sql(op: Threshold, needed: Names | None, lower: LowerToSpark) -> str:
    """Each row beside the bound of each end; the weights multiply."""
    condition = spark_expression(comparison(op), op.left.columns + op.right.columns)
    return (
        f"select {names_list(op.columns)}l.w0 * r.w0 as w0, l.w1 * r.w1 as w1"
        f" from ({lower(op.left)}) l left join ({lower(op.right)}) r on {any_pair('l.w0', 'r.w0')}"
        f" where {condition} and (l.w0 * r.w0 <> 0 or l.w1 * r.w1 <> 0)"
    )


def obstacle(op: Threshold) -> str | None:
    """Why Spark cannot compare the two."""
    if not comparable(op.left.column(op.compared), op.right.column(op.bound), needs_order=True):
        return f"comparing {op.compared} with {op.bound}"
    return None


def postgres_sql(op: Threshold, lower: LowerToPostgres) -> str:
    left, right = lower(op.left), lower(op.right)
    condition = f"l.{quoted(op.compared)} {op.comparison} r.{quoted(op.bound)}"
    return f"select l.* from ({left}) as l join ({right}) as r on {condition}"


def held_by(op: Threshold, columns: tuple[str, ...], find_reads: FindReads) -> HeldBy:
    return find_reads(op.left, columns)


def is_nullable(op: Threshold, name: str, ask: AskNullable) -> bool:
    return name != op.compared and ask(op.left, name)


def is_unique(op: Threshold, names: Set[str], ask: AskUnique) -> bool:
    return ask(op.left, names & op.left.names)


def row_key(op: Threshold, ask: AskKey) -> tuple[str, ...] | None:
    return ask(op.left)


def prune(op: Threshold, names: Names, pruner: Pruner) -> Operator:
    left = pruner.prune(op.left, names | {op.compared})
    return replace(op, left=left, right=pruner.prune(op.right, frozenset({op.bound})))


def push(op: Threshold, condition: Expression, restrict: Restrict) -> Operator:
    return replace(op, left=restrict(op.left, condition))


def tighten(op: Threshold, condition: Expression, tighten: Restrict) -> Operator:
    return replace(op, left=tighten(op.left, condition))


def conditions(op: Threshold, ask: AskConditions) -> Iterable[Expression]:
    return ask(op.left)


RULE = Rule(
    label=label,
    kind=lambda op: RuleKind.BILINEAR,
    bind=bind,
    spark_sql=spark_sql,
    obstacle=obstacle,
    postgres_sql=postgres_sql,
    places=same_columns,
    open_children=lambda op: FIRST_CHILD,
    held_by=held_by,
    is_nullable=is_nullable,
    is_unique=is_unique,
    row_key=row_key,
    groups=absent.no_groups,
    prune=prune,
    push=push,
    tighten=tighten,
    expressions=lambda op: (comparison(op),),
    spark_expressions=lambda op: (str(comparison(op)),),
    early_stops=absent.same_stop,
    has_one_row=absent.any_number_of_rows,
    group_child=lambda op: op.left,
    widened_child=absent.no_widened_child,
    conditions=conditions,
    endless_part=absent.no_endless_part,
)
