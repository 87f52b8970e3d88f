"""Operators as SQL for PostgreSQL: what it evaluates itself, and what it tells us the types of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pgtrickle.model.names import quoted
from pgtrickle.plan.expressions import Expression
from pgtrickle.plan.operators import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Operator,
    Project,
    Scan,
    UnionAll,
)


def over_source(scan: Scan, expression: Expression) -> str:
    """An expression of a scan as SQL over the alias `t`."""
    return expression.over(lambda name: "t." + quoted(scan.source_column(name)))


def postgres_sql(operator: Operator) -> str:
    """A SELECT whose columns are the operator's, under their plan names."""
    return _LOWERINGS[type(operator)](operator)


def _scan(op: Scan) -> str:
    columns = [f"{over_source(op, o.expression)} as {quoted(o.column.name)}" for o in op.outputs]
    where = f" where {over_source(op, op.condition)}" if op.condition else ""
    return f"select {', '.join(columns) or 'from'} from {op.source.name.sql} as t{where}".replace(
        "from from", "from"
    )


def _filter(op: Filter) -> str:
    return f"select * from ({postgres_sql(op.child)}) as t where {op.condition.sql}"


def _project(op: Project) -> str:
    columns = [f"{e.sql} as {quoted(c.name)}" for c, e in zip(op.columns, op.expressions, strict=True)]
    return f"select {', '.join(columns)} from ({postgres_sql(op.child)}) as t"


def _join(op: Join) -> str:
    conditions = [f"l.{quoted(left)} = r.{quoted(right)}" for left, right in op.on]
    if op.condition:
        conditions.append(op.condition.sql)
    on = " and ".join(conditions) or "true"
    return f"select * from ({postgres_sql(op.left)}) as l join ({postgres_sql(op.right)}) as r on {on}"


def _aggregate(op: Aggregate) -> str:
    keys = [f"{key.expression.sql} as {quoted(key.column.name)}" for key in op.keys]
    calls = [f"{call.expression.sql} as {quoted(call.column.name)}" for call in op.calls]
    group = ", ".join(str(number + 1) for number in range(len(op.keys)))
    tail = f" group by {group}" if group else ""
    return f"select {', '.join(keys + calls)} from ({postgres_sql(op.child)}) as t{tail}"


def _distinct(op: Distinct) -> str:
    return f"select distinct * from ({postgres_sql(op.child)}) as t"


def _union_all(op: UnionAll) -> str:
    return " union all ".join(f"select * from ({postgres_sql(arm)}) as t" for arm in op.arms)


_LOWERINGS: Mapping[type[Operator], Callable[[Any], str]] = {
    Scan: _scan,
    Filter: _filter,
    Project: _project,
    Join: _join,
    Aggregate: _aggregate,
    Distinct: _distinct,
    UnionAll: _union_all,
}
