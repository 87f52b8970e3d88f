"""Left and full outer join: pairs that match, and rows without a match, padded with nulls.

w(l, r) = w(l) · w(r)                     for matching pairs
w(l, ∅) = w(l) if no matching r, else 0   for unmatched left rows
w(∅, r) = w(r) if no matching l, else 0   for unmatched right rows of a full join

Kind: keyed by the columns of `on`, whole without any. A change on either side needs all rows of both sides
that match it: one more match can make a padded row disappear.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from pgtrickle.plan.expressions import Expression
from pgtrickle.plan.expressions.nulls import rejects_nulls
from pgtrickle.plan.lowering import postgres_text
from pgtrickle.plan.lowering.exactness import spark_name
from pgtrickle.plan.lowering.spark_text import folded_sql, names_list, typed_nulls, union_sql
from pgtrickle.plan.operators import Join, Operator, OuterJoin
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
    ColumnPlace,
    FindPlaces,
    FindReads,
    HeldBy,
    OpenChild,
    reads_together,
)
from pgtrickle.plan.rules.rule import (
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


def label(op: OuterJoin) -> str:
    return f"{'full' if op.keeps_right else 'left'} join {condition_label(op)}"


def spark_sql(op: OuterJoin, needed: Names | None, lower: LowerToSpark) -> str:
    """Pairs, and for each row of the left one without a partner for the ends at which it has none."""
    left, right = lower(op.left), lower(op.right)
    inner = "".join(f"r.{spark_name(c.name)} as {spark_name(c.name)}, " for c in op.right.columns)
    matched = f"case when r.w0 is not null then struct({inner}l.w0 * r.w0 as w0, l.w1 * r.w1 as w1) end"
    padding = f"struct({typed_nulls(op.right.columns)}if(c0 > 0, 0L, w0) as w0, if(c1 > 0, 0L, w1) as w1)"
    listed = names_list(op.left.columns, "l.")
    grouped = (
        f"select {listed}l.w0, l.w1, coalesce(sum(r.w0), 0L) as c0, coalesce(sum(r.w1), 0L) as c1,"
        f" collect_list({matched}) as matches"
        f" from ({folded_sql(op.left.columns, left)}) l left join ({right}) r"
        f" on {spark_condition(op, 'w0')} group by {listed}l.w0, l.w1"
    )
    made = ", ".join([spark_name(c.name) for c in op.right.columns] + ["w0", "w1"])
    unfolded = f"inline(concat(matches, array({padding}))) as ({made})"
    pairs = f"select {names_list(op.left.columns)}{unfolded} from ({grouped})"
    kept = f"select * from ({pairs}) where w0 <> 0 or w1 <> 0"
    return union_sql([kept, _unmatched_right(op, left, right)] if op.keeps_right else [kept])


def _unmatched_right(op: OuterJoin, left: str, right: str) -> str:
    listed = names_list(op.right.columns, "r.")
    counted = (
        f"select {listed}r.w0, r.w1, coalesce(sum(l.w0), 0L) as c0, coalesce(sum(l.w1), 0L) as c1"
        f" from ({folded_sql(op.right.columns, right)}) r left join ({left}) l"
        f" on {spark_condition(op, 'w0')} group by {listed}r.w0, r.w1"
    )
    columns = typed_nulls(op.left.columns) + names_list(op.right.columns)
    return (
        f"select {columns}if(c0 > 0, 0L, w0) as w0, if(c1 > 0, 0L, w1) as w1"
        f" from ({counted}) where (c0 = 0 and w0 <> 0) or (c1 = 0 and w1 <> 0)"
    )


def postgres_sql(op: OuterJoin, lower: LowerToPostgres) -> str:
    left, right, on = lower(op.left), lower(op.right), postgres_condition(op)
    if op.keeps_right and not op.on:
        # PostgreSQL makes a FULL JOIN of equalities only
        return _full_join_by_parts(op, left, right, on)
    word = "full" if op.keeps_right else "left"
    return f"select * from ({left}) as l {word} join ({right}) as r on {on}"


def _full_join_by_parts(op: OuterJoin, left: str, right: str, on: str) -> str:
    kept = f"select l.*, r.* from ({left}) as l left join ({right}) as r on {on}"
    nulls = postgres_text.typed_nulls(op.left.columns)
    unmatched = f"not exists (select from ({left}) as l where {on})"
    return f"{kept} union all select {nulls}, r.* from ({right}) as r where {unmatched}"


def places(op: OuterJoin) -> FindPlaces:
    left = op.left.names
    return lambda name: (
        ColumnPlace(0, name, op.keeps_right) if name in left else ColumnPlace(1, name, True),
    )


def open_children(op: OuterJoin) -> tuple[OpenChild, ...]:
    return (OpenChild(0, is_padded=op.keeps_right), OpenChild(1, is_padded=True))


def held_by(op: OuterJoin, columns: tuple[str, ...], find_reads: FindReads) -> HeldBy:
    """Each side holds the values of its own columns, apart from the nulls of padded rows."""
    if not columns and op.keeps_right:
        return reads_together([find_reads(op.left, ()), find_reads(op.right, ())])
    for side in op.children:
        if set(columns) <= side.names:
            return find_reads(side, columns)
    return None


def is_nullable(op: OuterJoin, name: str, ask: AskNullable) -> bool:
    is_kept = name in op.left.names and not op.keeps_right
    return not is_kept or ask(op.left, name)


def is_unique(op: OuterJoin, names: Set[str], ask: AskUnique) -> bool:
    left, right = names & op.left.names, names & op.right.names
    if op.keeps_right:
        return False
    return ask(op.left, left) and ask(op.right, right | {other for _, other in op.on})


def row_key(op: OuterJoin, ask: AskKey) -> tuple[str, ...] | None:
    left, right = ask(op.left), ask(op.right)
    return None if left is None or right is None or op.keeps_right else (*left, *right)


def prune(op: OuterJoin, names: Names, pruner: Pruner) -> Operator:
    if _is_unread(op, names, pruner):
        return pruner.prune(op.left, names)
    return prune_sides(op, names, pruner)


def _is_unread(op: OuterJoin, names: Names, pruner: Pruner) -> bool:
    """Whether the join only adds columns to its left rows that are not read.

    PostgreSQL does not evaluate those either: a subquery with several rows is no error there.
    """
    if op.keeps_right or names & op.right.names:
        return False
    return pruner.is_unique(op.right, {own for _, own in op.on})


def push(op: OuterJoin, condition: Expression, restrict: Restrict) -> Operator | None:
    is_of_left = condition.columns <= op.left.names and not op.keeps_right
    return replace(op, left=restrict(op.left, condition)) if is_of_left else None


def tighten(op: OuterJoin, condition: Expression, tighten: Restrict) -> Operator:
    """A join that pads only the rows whose padding the condition may let through."""
    texts = op.text_columns
    rejects_right = rejects_nulls(condition.node, op.right.names, texts)
    rejects_left = op.keeps_right and rejects_nulls(condition.node, op.left.names, texts)
    if rejects_right and (rejects_left or not op.keeps_right):
        return tighten(Join(op.left, op.right, op.on, op.condition), condition)
    if rejects_left:
        return tighten(OuterJoin(op.left, op.right, op.on, op.condition), condition)
    if rejects_right:
        swapped = tuple((other, own) for own, other in op.on)
        return tighten(OuterJoin(op.right, op.left, swapped, op.condition), condition)
    return op if op.keeps_right else replace(op, left=tighten(op.left, condition))


def widened_child(op: OuterJoin, names: Set[str], ask: AskUnique) -> Operator | None:
    """The left, if each of its rows has one match at most."""
    if op.keeps_right or not names <= op.left.names:
        return None
    return op.left if ask(op.right, {theirs for _, theirs in op.on}) else None


RULE = Rule(
    label=label,
    kind=match_kind,
    bind=bind_with_matches,
    spark_sql=spark_sql,
    obstacle=obstacle,
    postgres_sql=postgres_sql,
    places=places,
    open_children=open_children,
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
    early_stops=absent.same_stop,
    has_one_row=absent.any_number_of_rows,
    group_child=absent.no_group_child,
    widened_child=widened_child,
    conditions=absent.no_conditions,
    endless_part=absent.no_endless_part,
)
