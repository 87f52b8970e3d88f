"""Mark: each row of the left with a boolean that is true if some row of the right matches it.

w(l, true)  = w(l) if some r matches, else 0
w(l, false) = w(l) if no r matches, else 0

Kind: keyed by the columns of `on`, whole without any. A change on the right needs the left rows that match
it, and all of their matches.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from pgtrickle.model.names import quoted
from pgtrickle.plan.expressions import Expression
from pgtrickle.plan.lowering.exactness import spark_name
from pgtrickle.plan.lowering.spark_text import folded_sql, names_list
from pgtrickle.plan.operators import Mark, Operator
from pgtrickle.plan.rules import absent
from pgtrickle.plan.rules.pairs import (
    bind_with_matches,
    condition_label,
    expressions,
    match_kind,
    obstacle,
    postgres_condition,
    prune_sides,
    spark_condition,
    spark_expressions,
)
from pgtrickle.plan.rules.provenance import (
    FIRST_CHILD,
    FindReads,
    HeldBy,
    further_columns,
    reads_of_first_child,
)
from pgtrickle.plan.rules.rule import (
    AskKey,
    AskNullable,
    AskUnique,
    EarlyStop,
    LowerToPostgres,
    LowerToSpark,
    Names,
    Pruner,
    Restrict,
    Rule,
)


def label(op: Mark) -> str:
    return f"mark {op.column_.name}: has a match {condition_label(op)}"


def spark_sql(op: Mark, needed: Names | None, lower: LowerToSpark) -> str:
    """Rows of the left, twice if the answer was another one before."""
    counted = _with_number_of_matches(op, lower(op.left), lower(op.right))
    mark_name = spark_name(op.column_.name)
    stayed = "array(struct(c1 > 0 as m, w0, w1))"
    moved = "array(struct(c0 > 0 as m, w0, 0L as w1), struct(c1 > 0 as m, 0L as w0, w1))"
    ends = f"inline(if((c0 > 0) = (c1 > 0), {stayed}, {moved})) as ({mark_name}, w0, w1)"
    return f"select {names_list(op.left.columns)}{ends} from ({counted})"


def _with_number_of_matches(op: Mark, left: str, right: str) -> str:
    """Rows of the left with the number of their matches at each end."""
    listed = names_list(op.left.columns, "l.")
    if op.condition is None:
        keys = "".join(f"{spark_name(name)}, " for name in dict.fromkeys(theirs for _, theirs in op.on))
        group = f" group by {keys[:-2]}" if keys else ""
        counts = f"select {keys}sum(w0) as c0, sum(w1) as c1 from ({right}){group}"
        return (
            f"select {listed}l.w0, l.w1, coalesce(r.c0, 0L) as c0, coalesce(r.c1, 0L) as c1"
            f" from ({left}) l left join ({counts}) r on {spark_condition(op, 'c0')}"
        )
    return (
        f"select {listed}l.w0, l.w1, coalesce(sum(r.w0), 0L) as c0, coalesce(sum(r.w1), 0L) as c1"
        f" from ({folded_sql(op.left.columns, left)}) l left join ({right}) r"
        f" on {spark_condition(op, 'w0')} group by {listed}l.w0, l.w1"
    )


def postgres_sql(op: Mark, lower: LowerToPostgres) -> str:
    left, right = lower(op.left), lower(op.right)
    exists = f"exists (select from ({right}) as r where {postgres_condition(op)})"
    return f"select l.*, {exists} as {quoted(op.column_.name)} from ({left}) as l"


def held_by(op: Mark, columns: tuple[str, ...], find_reads: FindReads) -> HeldBy:
    return reads_of_first_child(op, columns, further_columns(op), find_reads)


def is_nullable(op: Mark, name: str, ask: AskNullable) -> bool:
    return name != op.column_.name and ask(op.left, name)


def is_unique(op: Mark, names: Set[str], ask: AskUnique) -> bool:
    return ask(op.left, names & op.left.names)


def row_key(op: Mark, ask: AskKey) -> tuple[str, ...] | None:
    return ask(op.left)


def prune(op: Mark, names: Names, pruner: Pruner) -> Operator:
    if op.column_.name not in names:
        return pruner.prune(op.left, names)
    return prune_sides(op, names, pruner)


def early_stops(op: Mark, stop: EarlyStop) -> tuple[EarlyStop, ...]:
    """The right is read only until there is a match."""
    return stop, EarlyStop(is_probed=True)


def push(op: Mark, condition: Expression, restrict: Restrict) -> Operator | None:
    is_of_left = condition.columns <= op.left.names
    return replace(op, left=restrict(op.left, condition)) if is_of_left else None


def tighten(op: Mark, condition: Expression, tighten: Restrict) -> Operator:
    return replace(op, left=tighten(op.left, condition))


def widened_child(op: Mark, names: Set[str], ask: AskUnique) -> Operator | None:
    return op.left if names <= op.left.names else None


RULE = Rule(
    label=label,
    kind=match_kind,
    bind=bind_with_matches,
    spark_sql=spark_sql,
    obstacle=obstacle,
    postgres_sql=postgres_sql,
    places=further_columns,
    open_children=lambda op: FIRST_CHILD,
    held_by=held_by,
    is_nullable=is_nullable,
    is_unique=is_unique,
    row_key=row_key,
    groups=absent.no_groups,
    prune=prune,
    push=push,
    tighten=tighten,
    expressions=expressions,
    spark_expressions=spark_expressions,
    early_stops=early_stops,
    has_one_row=absent.any_number_of_rows,
    group_child=absent.no_group_child,
    widened_child=widened_child,
    conditions=absent.no_conditions,
    endless_part=absent.no_endless_part,
)
