"""Recursion: the rows of a base, and those that a step makes of them, again and again to the end.

R = base ∪ step(R), the least such R; with UNION ALL each row as often as it is made

Kind: whole. No key tells which rows a recursion reaches, so all rows of both terms are read at both ends, and
PostgreSQL evaluates it. `Itself` stands for the rows of the step before; it has no rows anywhere else.
"""

from __future__ import annotations

from pgtrickle.model.names import quoted
from pgtrickle.plan.lowering.postgres_text import no_rows
from pgtrickle.plan.operators import Itself, Operator, Recursive, Values
from pgtrickle.plan.rules import absent
from pgtrickle.plan.rules.kind import RuleKind
from pgtrickle.plan.rules.needs import EVERYTHING, Binder, Needs
from pgtrickle.plan.rules.positions import prune_nothing_off
from pgtrickle.plan.rules.provenance import own_columns
from pgtrickle.plan.rules.rule import AskConditions, LowerToPostgres, Rule
from pgtrickle.plan.rules.termination import surely_ends


def label(op: Recursive) -> str:
    return f"recursion {op.name}, union{' all' if op.is_all else ''} of its base and its step"


def bind(op: Recursive, needs: Needs, binder: Binder) -> Operator:
    """All rows of both terms."""
    return op.with_children(tuple(binder.bind(child, (EVERYTHING,)) for child in op.children))


def postgres_sql(op: Recursive, lower: LowerToPostgres) -> str:
    name, columns = quoted(op.name), ", ".join(quoted(c.name) for c in op.columns)
    base, step = _term(op.base, lower), _term(_reading_itself(op.step, op.name), lower)
    word = "union all" if op.is_all else "union"
    return f"with recursive {name}({columns}) as ({base} {word} {step}) select * from {name}"


def _term(op: Operator, lower: LowerToPostgres) -> str:
    return f"select {', '.join(quoted(c.name) for c in op.columns)} from ({lower(op)}) as t"


def _reading_itself(op: Operator, name: str) -> Operator:
    """The step that reads the recursion by name, which is known inside of it only, instead of `Itself`."""
    if isinstance(op, Itself) and op.name == name:
        return Values(f"select * from {quoted(name)}", op.columns)
    return op.with_children(tuple(_reading_itself(child, name) for child in op.children))


def endless_part(op: Recursive, ask: AskConditions) -> str | None:
    return None if surely_ends(op, ask(op.step)) else "a recursion that may never end"


RULE = Rule(
    label=label,
    kind=lambda op: RuleKind.WHOLE,
    bind=bind,
    spark_sql=None,
    obstacle=lambda op: "WITH RECURSIVE",
    postgres_sql=postgres_sql,
    places=own_columns,
    open_children=absent.no_open_children,
    held_by=absent.no_reads,
    is_nullable=absent.any_nullable,
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
    endless_part=endless_part,
)

ITSELF = Rule(
    label=lambda op: f"rows of {op.name} so far",
    kind=lambda op: RuleKind.LINEAR,
    bind=absent.nothing_to_bind,
    spark_sql=None,
    obstacle=absent.no_obstacle,
    postgres_sql=lambda op, lower: no_rows(op.columns),
    places=own_columns,
    open_children=absent.no_open_children,
    held_by=absent.no_reads,
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
