"""INTERSECT and EXCEPT, with or without ALL, matched by position.

intersect all: w = min(l, r)         intersect: w = 1 if l > 0 and r > 0, else 0
except all:    w = max(l − r, 0)     except:    w = 1 if l > 0 and r = 0, else 0

Kind: keyed by the whole row. A change on either side needs all copies of the rows that it touches, on both.
"""

from __future__ import annotations

from pgtrickle.plan.lowering.exactness import spark_name
from pgtrickle.plan.lowering.spark_text import names_list, union_sql
from pgtrickle.plan.operators import Operator, SetKind, SetOperation
from pgtrickle.plan.rules import absent
from pgtrickle.plan.rules.groups import incomparable
from pgtrickle.plan.rules.kind import RuleKind
from pgtrickle.plan.rules.needs import Binder, Needs, needs_below, unique_needs
from pgtrickle.plan.rules.positions import different_forms, places_by_position, prune_nothing_off
from pgtrickle.plan.rules.provenance import FindReads, HeldBy, same_columns
from pgtrickle.plan.rules.rule import AskNullable, LowerToPostgres, LowerToSpark, Names, Rule


def label(op: SetOperation) -> str:
    return op.kind.value + (" all" if op.is_all else "")


def bind(op: SetOperation, needs: Needs, binder: Binder) -> Operator:
    """Whole rows are the keys, and both sides are counted for them."""
    needed = list(needs)
    for side in op.children:
        pairs = [(ours, theirs) for ours, theirs in places_by_position(op, side).items()]
        needed += binder.changed_keys(side, pairs, is_null_safe=True)
    of_both = unique_needs(needed)
    return op.with_children(
        tuple(binder.bind(side, needs_below(of_both, places_by_position(op, side))) for side in op.children)
    )


def spark_sql(op: SetOperation, needed: Names | None, lower: LowerToSpark) -> str:
    """Rows with the number that the counts on both sides give."""
    listed = names_list(op.columns)
    renamed = "".join(
        f"{spark_name(theirs.name)} as {spark_name(ours.name)}, "
        for ours, theirs in zip(op.columns, op.right.columns, strict=True)
    )
    both = union_sql(
        [
            f"select {listed}w0 as l0, w1 as l1, 0L as r0, 0L as r1 from ({lower(op.left)})",
            f"select {renamed}0L as l0, 0L as l1, w0 as r0, w1 as r1 from ({lower(op.right)})",
        ]
    )
    sums = ", ".join(f"sum({name}) as {name}" for name in ("l0", "l1", "r0", "r1"))
    counts = f"select {listed}{sums} from ({both}) group by {listed[:-2]}"
    weights = ", ".join(f"{_kept_weights(op, f'l{end}', f'r{end}')} as w{end}" for end in (0, 1))
    return f"select {listed}{weights} from ({counts})"


def _kept_weights(op: SetOperation, left: str, right: str) -> str:
    if op.kind is SetKind.INTERSECT:
        return f"least({left}, {right})" if op.is_all else f"if({left} > 0 and {right} > 0, 1L, 0L)"
    return f"greatest({left} - {right}, 0L)" if op.is_all else f"if({left} > 0 and {right} <= 0, 1L, 0L)"


def obstacle(op: SetOperation) -> str | None:
    return different_forms(op) or incomparable(op.columns)


def postgres_sql(op: SetOperation, lower: LowerToPostgres) -> str:
    return f"select * from ({lower(op.left)}) as t {label(op)} select * from ({lower(op.right)}) as t"


def held_by(op: SetOperation, columns: tuple[str, ...], find_reads: FindReads) -> HeldBy:
    """Every row of the result is one of the left."""
    return find_reads(op.left, columns)


def is_nullable(op: SetOperation, name: str, ask: AskNullable) -> bool:
    return any(ask(side, places_by_position(op, side)[name]) for side in op.children)


RULE = Rule(
    label=label,
    kind=lambda op: RuleKind.KEYED,
    bind=bind,
    spark_sql=spark_sql,
    obstacle=obstacle,
    postgres_sql=postgres_sql,
    places=same_columns,
    open_children=absent.no_open_children,
    held_by=held_by,
    is_nullable=is_nullable,
    is_unique=absent.never_unique,
    row_key=absent.no_row_key,
    groups=absent.no_groups,
    prune=prune_nothing_off,
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
