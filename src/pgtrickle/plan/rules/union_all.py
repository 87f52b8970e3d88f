"""Union all: the rows of several arms together, matched by position.

w(row) = sum of w over the arms

Kind: linear.
"""

from __future__ import annotations

from pgtrickle.plan.expressions import Expression, column
from pgtrickle.plan.lowering.exactness import spark_name
from pgtrickle.plan.lowering.spark_text import WEIGHTS, union_sql
from pgtrickle.plan.operators import Nothing, Operator, UnionAll
from pgtrickle.plan.rules import absent
from pgtrickle.plan.rules.kind import RuleKind
from pgtrickle.plan.rules.needs import Binder, Needs, needs_below
from pgtrickle.plan.rules.positions import different_forms, places_by_position
from pgtrickle.plan.rules.provenance import ColumnPlace, FindPlaces, FindReads, HeldBy, reads_together
from pgtrickle.plan.rules.pushing import keep_columns
from pgtrickle.plan.rules.rule import (
    AskNullable,
    LowerToPostgres,
    LowerToSpark,
    Names,
    Pruner,
    Restrict,
    Rule,
)


def label(op: UnionAll) -> str:
    return "union all"


def bind(op: UnionAll, needs: Needs, binder: Binder) -> Operator:
    """Each arm for what is needed of the union."""
    return op.with_children(
        tuple(binder.bind(arm, needs_below(needs, places_by_position(op, arm))) for arm in op.arms)
    )


def spark_sql(op: UnionAll, needed: Names | None, lower: LowerToSpark) -> str:
    arms = [arm for arm in op.arms if not isinstance(arm, Nothing)] or [op.arms[0]]
    return union_sql(f"select {_rename_columns(arm, op)}{WEIGHTS} from ({lower(arm)})" for arm in arms)


def _rename_columns(arm: Operator, op: UnionAll) -> str:
    pairs = zip(arm.columns, op.columns, strict=True)
    return "".join(f"{spark_name(own.name)} as {spark_name(ours.name)}, " for own, ours in pairs)


def postgres_sql(op: UnionAll, lower: LowerToPostgres) -> str:
    return " union all ".join(f"select * from ({lower(arm)}) as t" for arm in op.arms)


def places(op: UnionAll) -> FindPlaces:
    positions = {column.name: number for number, column in enumerate(op.columns)}

    def find(name: str) -> tuple[ColumnPlace, ...]:
        position = positions[name]
        return tuple(ColumnPlace(number, arm.columns[position].name) for number, arm in enumerate(op.arms))

    return find


def held_by(op: UnionAll, columns: tuple[str, ...], find_reads: FindReads) -> HeldBy:
    """All arms together hold the values."""
    parts = []
    for arm in op.arms:
        below = places_by_position(op, arm)
        parts.append(find_reads(arm, tuple(below[name] for name in columns)))
    return reads_together(parts)


def is_nullable(op: UnionAll, name: str, ask: AskNullable) -> bool:
    return any(ask(op.arms[place.child], place.column) for place in places(op)(name))


def prune(op: UnionAll, names: Names, pruner: Pruner) -> Operator:
    positions = [i for i, c in enumerate(op.columns) if c.name in names] or [0]
    return UnionAll(tuple(pruner.prune_to(arm, [arm.columns[i].name for i in positions]) for arm in op.arms))


def push(op: UnionAll, condition: Expression, restrict: Restrict) -> Operator:
    arms: list[Operator] = []
    for arm in op.arms:
        own = {ours: column(theirs) for ours, theirs in places_by_position(op, arm).items()}
        arms.append(keep_columns(arm, restrict(arm, condition.substitute(own))))
    return UnionAll(tuple(arms))


RULE = Rule(
    label=label,
    kind=lambda op: RuleKind.LINEAR,
    bind=bind,
    spark_sql=spark_sql,
    obstacle=different_forms,
    postgres_sql=postgres_sql,
    places=places,
    open_children=absent.no_open_children,
    held_by=held_by,
    is_nullable=is_nullable,
    is_unique=absent.never_unique,
    row_key=absent.no_row_key,
    groups=absent.no_groups,
    prune=prune,
    push=push,
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
