"""Project: one row for each row of the child, made of expressions.

w(row) = sum of w over the rows of the child that give this row

Kind: linear.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from pgtrickle.model.names import quoted
from pgtrickle.plan.expressions import Expression, column
from pgtrickle.plan.expressions.nulls import can_be_null
from pgtrickle.plan.lowering.exactness import require_exact, spark_name
from pgtrickle.plan.lowering.spark_text import WEIGHTS, carried_value
from pgtrickle.plan.operators import Operator, Project
from pgtrickle.plan.rules import absent
from pgtrickle.plan.rules.kind import RuleKind
from pgtrickle.plan.rules.linear import bind_child
from pgtrickle.plan.rules.provenance import (
    FIRST_CHILD,
    ColumnPlace,
    FindPlaces,
    FindReads,
    HeldBy,
    OpenChild,
    reads_of_first_child,
)
from pgtrickle.plan.rules.pushing import restricted_child
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


def label(op: Project) -> str:
    pairs = zip(op.columns, op.expressions, strict=True)
    return f"project {', '.join(_with_alias(c.name, str(e)) for c, e in pairs)}"


def _with_alias(name: str, text: str) -> str:
    return text if name == text else f"{text} as {name}"


def spark_sql(op: Project, needed: Names | None, lower: LowerToSpark) -> str:
    pairs = zip(op.columns, op.expressions, strict=True)
    listed = [f"{carried_value(e, c, op.child.columns)} as {spark_name(c.name)}, " for c, e in pairs]
    read = frozenset(name for expression in op.expressions for name in expression.columns)
    return f"select {''.join(listed)}{WEIGHTS} from ({lower(op.child, read)})"


def obstacle(op: Project) -> None:
    for expression in op.expressions:
        require_exact(expression, op.child.columns)


def postgres_sql(op: Project, lower: LowerToPostgres) -> str:
    columns = [f"{e.sql} as {quoted(c.name)}" for c, e in zip(op.columns, op.expressions, strict=True)]
    return f"select {', '.join(columns)} from ({lower(op.child)}) as t"


def places(op: Project) -> FindPlaces:
    given = {c.name: e.column for c, e in zip(op.columns, op.expressions, strict=True)}

    def find(name: str) -> tuple[ColumnPlace, ...]:
        below = given.get(name)
        return () if below is None else (ColumnPlace(0, below),)

    return find


def is_extending(op: Project) -> bool:
    """Whether the project only adds columns to its child's."""
    kept = op.columns[: len(op.child.columns)]
    given = [e.column for e in op.expressions[: len(kept)]]
    return kept == op.child.columns and given == [c.name for c in kept]


def over_child(op: Project, child: Operator) -> Project:
    """An extending project over another child, which may have more columns, or another order."""
    added = len(op.child.columns)
    kept = tuple(column(c.name) for c in child.columns)
    return Project(child, (*child.columns, *op.columns[added:]), (*kept, *op.expressions[added:]))


def open_children(op: Project) -> tuple[OpenChild, ...]:
    return FIRST_CHILD if is_extending(op) else ()


def held_by(op: Project, columns: tuple[str, ...], find_reads: FindReads) -> HeldBy:
    return reads_of_first_child(op, columns, places(op), find_reads)


def is_nullable(op: Project, name: str, ask: AskNullable) -> bool:
    position = [c.name for c in op.columns].index(name)
    known = op.child.names
    return can_be_null(op.expressions[position], lambda below: below not in known or ask(op.child, below))


def is_unique(op: Project, names: Set[str], ask: AskUnique) -> bool:
    pairs = zip(op.columns, op.expressions, strict=True)
    return ask(op.child, {e.column for c, e in pairs if c.name in names and e.column})


def row_key(op: Project, ask: AskKey) -> tuple[str, ...] | None:
    own = {e.column: c.name for c, e in zip(op.columns, op.expressions, strict=True)}
    below = ask(op.child)
    return None if below is None or not own.keys() >= set(below) else tuple(own[name] for name in below)


def prune(op: Project, names: Names, pruner: Pruner) -> Operator:
    pairs = [(c, e) for c, e in zip(op.columns, op.expressions, strict=True) if c.name in names]
    pairs = pairs or [(op.columns[0], op.expressions[0])]
    read = frozenset(name for _, expression in pairs for name in expression.columns)
    return Project(pruner.prune(op.child, read), tuple(c for c, _ in pairs), tuple(e for _, e in pairs))


def expressions(op: Project) -> tuple[Expression, ...]:
    return op.expressions


def spark_expressions(op: Project) -> list[str]:
    return [str(e) for e in op.expressions if e.column is None]


def push(op: Project, condition: Expression, restrict: Restrict) -> Operator | None:
    if is_extending(op):
        child = restricted_child(op, condition, {name: column(name) for name in op.child.names}, restrict)
        return None if child is None else over_child(op, child)
    known = {c.name: e for c, e in zip(op.columns, op.expressions, strict=True)}
    child = restricted_child(op, condition, known, restrict)
    return None if child is None else replace(op, child=child)


def tighten(op: Project, condition: Expression, tighten: Restrict) -> Operator:
    return over_child(op, tighten(op.child, condition)) if is_extending(op) else op


def widened_child(op: Project, names: Set[str], ask: AskUnique) -> Operator | None:
    return op.child if is_extending(op) and names <= op.child.names else None


RULE = Rule(
    label=label,
    kind=lambda op: RuleKind.LINEAR,
    bind=lambda op, needs, binder: bind_child(op, needs, binder, places(op)),
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
    group_child=lambda op: op.child,
    widened_child=widened_child,
    conditions=lambda op, ask: ask(op.child),
    endless_part=absent.no_endless_part,
)
