"""Values: rows that the query itself spells out.

w(row) = how often the query has it, at both ends

Kind: linear. Its rows never change; PostgreSQL evaluates them once.
"""

from __future__ import annotations

from pgtrickle.model.names import quoted
from pgtrickle.plan.operators import Values
from pgtrickle.plan.rules import absent
from pgtrickle.plan.rules.kind import RuleKind
from pgtrickle.plan.rules.provenance import own_columns
from pgtrickle.plan.rules.rule import AskKey, LowerToPostgres, Rule


def label(op: Values) -> str:
    return f"values {op.query[:60]}"


def postgres_sql(op: Values, lower: LowerToPostgres) -> str:
    if not op.columns:
        return "select"
    names = ", ".join(quoted(c.name) for c in op.columns)
    return f"select * from ({op.query}) as t({names})"


def row_key(op: Values, ask: AskKey) -> tuple[str, ...] | None:
    return () if not op.columns else None


RULE = Rule(
    label=label,
    kind=lambda op: RuleKind.LINEAR,
    bind=lambda op, needs, binder: binder.read_constant(op),
    spark_sql=None,
    obstacle=absent.no_obstacle,
    postgres_sql=postgres_sql,
    places=own_columns,
    open_children=absent.no_open_children,
    held_by=absent.no_reads,
    is_nullable=absent.any_nullable,
    is_unique=absent.never_unique,
    row_key=row_key,
    groups=absent.no_groups,
    prune=absent.nothing_to_prune,
    push=absent.push_nothing,
    tighten=absent.tighten_nothing,
    expressions=absent.no_expressions,
    spark_expressions=absent.no_spark_expressions,
    early_stops=absent.same_stop,
    has_one_row=lambda op: not op.columns,
    group_child=absent.no_group_child,
    widened_child=absent.no_widened_child,
    conditions=absent.no_conditions,
    endless_part=absent.no_endless_part,
)
