"""What both kinds of groups at the top share: keys, HAVING and outputs over the groups' columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pgtrickle.model.source import PgType
from pgtrickle.plan.expressions import Expression
from pgtrickle.plan.operators import Aggregate
from pgtrickle.plan.program import Cut, Output


@dataclass(frozen=True, slots=True)
class Grouped:
    """An aggregate at the top, the condition on its groups, and the outputs over them."""

    aggregate: Aggregate
    having: Expression | None
    outputs: tuple[tuple[str, PgType, Expression], ...]
    cut: Cut | None = None
    hidden: tuple[tuple[str, PgType, Expression], ...] = ()
    """What the cut orders by."""


def group_outputs(
    grouped: Grouped, finals: Mapping[str, str]
) -> tuple[str | None, tuple[Output, ...], tuple[str, ...] | None]:
    """HAVING and outputs as SQL, given the SQL of each column of the groups; and a key, if shown."""
    having = grouped.having.over(finals.__getitem__) if grouped.having else None
    outputs = tuple(
        Output(name, pg_type.text, expression.over(finals.__getitem__), pg_type.domain, pg_type.collation)
        for name, pg_type, expression in grouped.outputs
    )
    plain = {e.column: name for name, _, e in grouped.outputs if e.column is not None}
    keys = [key.column.name for key in grouped.aggregate.keys]
    key = tuple(plain[name] for name in keys) if keys and all(name in plain for name in keys) else None
    return having, outputs, key
