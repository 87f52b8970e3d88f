"""Single: rows of which each combination of keys has one at most; more are an error.

w(row) = w of the child, or an error if a key has more than one row now

Kind: keyed by its keys, whole without any. A change needs all rows with the keys that it touches.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from pgtrickle.model.names import quoted
from pgtrickle.plan.lowering.exactness import spark_name
from pgtrickle.plan.operators import MORE_THAN_ONE_ROW, Operator, Single
from pgtrickle.plan.rules import absent
from pgtrickle.plan.rules.groups import incomparable
from pgtrickle.plan.rules.kind import RuleKind
from pgtrickle.plan.rules.partitions import bind_whole_partitions, groups_by
from pgtrickle.plan.rules.provenance import FIRST_CHILD, FindReads, HeldBy, same_columns
from pgtrickle.plan.rules.rule import AskUnique, LowerToPostgres, LowerToSpark, Names, Pruner, Rule


def label(op: Single) -> str:
    return f"one row at most for each ({', '.join(op.keys)})" if op.keys else "one row at most"


def kind(op: Single) -> RuleKind:
    return RuleKind.KEYED if op.keys else RuleKind.WHOLE


def spark_sql(op: Single, needed: Names | None, lower: LowerToSpark) -> str:
    """The rows, or an error if there are several of one key now."""
    keys = ", ".join(spark_name(name) for name in op.keys)
    made = ", ".join([spark_name(c.name) for c in op.columns] + ["w0", "w1"])
    group = f" group by {keys}" if keys else ""
    rows = lower(op.child)
    collected = f"select collect_list(struct({made})) as found, sum(w1) as n1 from ({rows}){group}"
    error = f"raise_error('{MORE_THAN_ONE_ROW}')"
    return f"select inline(if(n1 > 1, {error}, found)) as ({made}) from ({collected})"


def obstacle(op: Single) -> str | None:
    return incomparable(tuple(op.column(name) for name in op.keys))


def postgres_sql(op: Single, lower: LowerToPostgres) -> str:
    """The rows, or an error that says what is wrong: the text of it is no number."""
    keys = ", ".join(quoted(name) for name in op.keys)
    over = f"(partition by {keys})" if keys else "()"
    listed = ", ".join(quoted(c.name) for c in op.columns)
    counted = f"select *, count(*) over {over} as rows_in_all from ({lower(op.child)}) as t"
    check = f"case when rows_in_all > 1 then ('{MORE_THAN_ONE_ROW}: ' || rows_in_all)::int end"
    return f"select {listed} from ({counted}) as t where ({check}) is null"


def held_by(op: Single, columns: tuple[str, ...], find_reads: FindReads) -> HeldBy:
    return find_reads(op.child, columns)


def is_unique(op: Single, names: Set[str], ask: AskUnique) -> bool:
    return set(op.keys) <= names or ask(op.child, names)


def prune(op: Single, names: Names, pruner: Pruner) -> Operator:
    return replace(op, child=pruner.prune(op.child, names | set(op.keys)))


RULE = Rule(
    label=label,
    kind=kind,
    bind=lambda op, needs, binder: bind_whole_partitions(op, op.keys, needs, binder, same_columns(op)),
    spark_sql=spark_sql,
    obstacle=obstacle,
    postgres_sql=postgres_sql,
    places=same_columns,
    open_children=lambda op: FIRST_CHILD,
    held_by=held_by,
    is_nullable=absent.same_nullable,
    is_unique=is_unique,
    row_key=absent.same_row_key,
    groups=lambda op: groups_by(op.keys),
    prune=prune,
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
