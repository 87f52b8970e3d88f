"""Inner join: pairs of a left and a right row that match.

w(l, r) = w(l) · w(r)   for matching pairs

Kind: bilinear. A changed row of one side needs the rows of the other side that match it. Connected inner
joins are bound and written as one region: see `passes/bind/region.py` and `region.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import replace

from pgtrickle.plan.expressions import Expression, conjuncts
from pgtrickle.plan.expressions.nulls import excludes_null
from pgtrickle.plan.operators import Join, Nothing, Operator
from pgtrickle.plan.rules import absent
from pgtrickle.plan.rules.kind import RuleKind
from pgtrickle.plan.rules.pairs import (
    condition_label,
    expressions,
    obstacle,
    postgres_condition,
    prune_sides,
    spark_expressions,
)
from pgtrickle.plan.rules.provenance import ColumnPlace, FindPlaces, FindReads, HeldBy, OpenChild
from pgtrickle.plan.rules.region import region_sql
from pgtrickle.plan.rules.rule import (
    AskConditions,
    AskKey,
    AskNullable,
    AskUnique,
    LowerToPostgres,
    LowerToSpark,
    Names,
    Restrict,
    Rule,
)


def label(op: Join) -> str:
    return f"join {condition_label(op)}"


def spark_sql(op: Join, needed: Names | None, lower: LowerToSpark) -> str:
    return region_sql(op, op.names if needed is None else needed, lower)


def postgres_sql(op: Join, lower: LowerToPostgres) -> str:
    left, right = lower(op.left), lower(op.right)
    return f"select * from ({left}) as l join ({right}) as r on {postgres_condition(op)}"


def places(op: Join) -> FindPlaces:
    left = op.left.names
    return lambda name: (ColumnPlace(0 if name in left else 1, name),)


def held_by(op: Join, columns: tuple[str, ...], find_reads: FindReads) -> HeldBy:
    """Each side holds the values of its own columns, and each says whether there can be a pair."""
    if any(isinstance(side, Nothing) for side in op.children):
        return ()
    sides = [find_reads(side, columns) for side in op.children if set(columns) <= side.names]
    return next((found for found in sides if found is not None), None)


def is_nullable(op: Join, name: str, ask: AskNullable) -> bool:
    if any(name in pair for pair in op.on) or excludes_null(op.condition, name):
        return False
    return ask(op.left if name in op.left.names else op.right, name)


def is_unique(op: Join, names: Set[str], ask: AskUnique) -> bool:
    """One side is known by its own columns, the other by its own and what they are equal to."""
    left, right = names & op.left.names, names & op.right.names
    if ask(op.left, left) and ask(op.right, right | {other for _, other in op.on}):
        return True
    return ask(op.right, right) and ask(op.left, left | {own for own, _ in op.on})


def row_key(op: Join, ask: AskKey) -> tuple[str, ...] | None:
    left, right = ask(op.left), ask(op.right)
    return None if left is None or right is None else (*left, *right)


def push(op: Join, condition: Expression, restrict: Restrict) -> Operator | None:
    if condition.columns <= op.left.names:
        return replace(op, left=restrict(op.left, condition))
    if condition.columns <= op.right.names:
        return replace(op, right=restrict(op.right, condition))
    return None


def tighten(op: Join, condition: Expression, tighten: Restrict) -> Operator:
    return replace(op, left=tighten(op.left, condition), right=tighten(op.right, condition))


def conditions(op: Join, ask: AskConditions) -> Iterator[Expression]:
    if op.condition is not None:
        yield from conjuncts(op.condition)
    yield from ask(op.left)
    yield from ask(op.right)


RULE = Rule(
    label=label,
    kind=lambda op: RuleKind.BILINEAR,
    bind=lambda op, needs, binder: binder.bind_region(op, needs),
    spark_sql=spark_sql,
    obstacle=obstacle,
    postgres_sql=postgres_sql,
    places=places,
    open_children=lambda op: (OpenChild(0), OpenChild(1)),
    held_by=held_by,
    is_nullable=is_nullable,
    is_unique=is_unique,
    row_key=row_key,
    groups=absent.no_groups,
    prune=prune_sides,
    push=push,
    tighten=tighten,
    expressions=expressions,
    spark_expressions=spark_expressions,
    early_stops=absent.same_stop,
    has_one_row=absent.any_number_of_rows,
    group_child=absent.no_group_child,
    widened_child=absent.no_widened_child,
    conditions=conditions,
    endless_part=absent.no_endless_part,
)
