"""Top: of each partition the rows after an offset, up to a limit, in an order.

w(row) = how often it is among the rows that the cut keeps

Kind: keyed by its partition, whole without one. A change needs all rows of the partitions that it touches.
Spark has no order that PostgreSQL would agree with, so PostgreSQL evaluates it.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from pgtrickle.model.names import quoted
from pgtrickle.plan.operators import Operator, Top
from pgtrickle.plan.rules import absent
from pgtrickle.plan.rules.kind import RuleKind
from pgtrickle.plan.rules.partitions import bind_whole_partitions, groups_by
from pgtrickle.plan.rules.provenance import FIRST_CHILD, FindReads, HeldBy, same_columns
from pgtrickle.plan.rules.rule import AskUnique, EarlyStop, LowerToPostgres, Names, Pruner, Rule


def label(op: Top) -> str:
    order = ", ".join(f"{o.column}{' desc' if o.is_descending else ''}" for o in op.order)
    of = f" of each ({', '.join(op.partition)})" if op.partition else ""
    after = f" after {op.offset}" if op.offset else ""
    return f"first {'all' if op.limit is None else op.limit}{after}{of} in order of ({order})"


def kind(op: Top) -> RuleKind:
    return RuleKind.KEYED if op.partition else RuleKind.WHOLE


def postgres_sql(op: Top, lower: LowerToPostgres) -> str:
    order = ", ".join(
        f"{quoted(o.column)}{' desc' if o.is_descending else ''}"
        f" nulls {'first' if o.has_nulls_first else 'last'}"
        for o in op.order
    )
    ordered, rows = f" order by {order}" if order else "", f"({lower(op.child)}) as t"
    return _of_partitions(op, ordered, rows) if op.partition else _of_all(op, ordered, rows)


def _of_all(op: Top, ordered: str, rows: str) -> str:
    offset = f" offset {op.offset}" if op.offset else ""
    ties = "with ties" if op.has_ties else "only"
    limit = f" fetch first {op.limit} rows {ties}" if op.limit is not None else ""
    return f"select * from {rows}{ordered}{offset}{limit}"


def _of_partitions(op: Top, ordered: str, rows: str) -> str:
    listed = ", ".join(quoted(c.name) for c in op.columns)
    keys = ", ".join(quoted(name) for name in op.partition)
    over = f"(partition by {keys}{ordered})"
    cuts = [f"number_in_order > {op.offset}"] if op.offset else []
    if op.limit is not None:
        last = "rank_in_order" if op.has_ties else "number_in_order"
        cuts.append(f"{last} <= {op.offset + op.limit}")
    where = f" where {' and '.join(cuts)}" if cuts else ""
    numbered = (
        f"select *, row_number() over {over} as number_in_order, rank() over {over} as rank_in_order"
        f" from {rows}"
    )
    return f"select {listed} from ({numbered}) as t{where}"


def held_by(op: Top, columns: tuple[str, ...], find_reads: FindReads) -> HeldBy:
    return find_reads(op.child, columns)


def is_unique(op: Top, names: Set[str], ask: AskUnique) -> bool:
    is_first = op.limit == 1 and not op.has_ties
    return (is_first and set(op.partition) <= names) or ask(op.child, names)


def prune(op: Top, names: Names, pruner: Pruner) -> Operator:
    read = names | set(op.partition) | {ordering.column for ordering in op.order}
    return replace(op, child=pruner.prune(op.child, read))


def early_stops(op: Top, stop: EarlyStop) -> tuple[EarlyStop, ...]:
    """Sorting reads everything, whatever is shown of it; a limit without an order may stop."""
    return (replace(stop, is_cut=stop.is_cut or not op.order),)


RULE = Rule(
    label=label,
    kind=kind,
    bind=lambda op, needs, binder: bind_whole_partitions(op, op.partition, needs, binder, same_columns(op)),
    spark_sql=None,
    obstacle=lambda op: "an order",
    postgres_sql=postgres_sql,
    places=same_columns,
    open_children=lambda op: FIRST_CHILD,
    held_by=held_by,
    is_nullable=absent.same_nullable,
    is_unique=is_unique,
    row_key=absent.same_row_key,
    groups=lambda op: groups_by(op.partition),
    prune=prune,
    push=absent.push_nothing,
    tighten=absent.tighten_nothing,
    expressions=absent.no_expressions,
    spark_expressions=absent.no_spark_expressions,
    early_stops=early_stops,
    has_one_row=absent.any_number_of_rows,
    group_child=absent.no_group_child,
    widened_child=absent.no_widened_child,
    conditions=absent.no_conditions,
    endless_part=absent.no_endless_part,
)
