"""Operators as SQL for PostgreSQL: what it evaluates itself, and what it tells us the types of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pgtrickle.model.names import quoted
from pgtrickle.plan.expressions import Expression
from pgtrickle.plan.operators import (
    MORE_THAN_ONE_ROW,
    Aggregate,
    Answer,
    Column,
    Distinct,
    Evaluated,
    Filter,
    Itself,
    Join,
    Leaf,
    Mark,
    Nothing,
    Operator,
    OuterJoin,
    Project,
    Recursive,
    Scan,
    SetOperation,
    Single,
    TableFunction,
    Top,
    UnionAll,
    Values,
    Window,
)
from pgtrickle.plan.trees import with_children


def over_source(scan: Scan, expression: Expression) -> str:
    """An expression of a scan as SQL over the alias `t`."""
    return expression.over(lambda name: "t." + quoted(scan.source_column(name)))


def postgres_sql(operator: Operator) -> str:
    """A SELECT whose columns are the operator's, under their plan names."""
    return _LOWERINGS[type(operator)](operator)


def leaf_name(scan: Scan) -> str:
    """The name by which SQL refers to what was read of a scan."""
    return quoted(f"rows of {scan.alias}")


def _below(op: Operator, alias: str = "t") -> str:
    return f"({postgres_sql(op)}) as {alias}"


def _scan(op: Scan) -> str:
    columns = ", ".join(f"{over_source(op, o.expression)} as {quoted(o.column.name)}" for o in op.outputs)
    where = f" where {over_source(op, op.condition)}" if op.condition else ""
    return f"select {columns} from {op.source.table.sql} as t{where}"


def _leaf(op: Leaf) -> str:
    return f"select * from {leaf_name(op.scan)}"


def _answer(op: Answer) -> str:
    """Inside another answer only constants are answers: the query that reads no part."""
    ((read, _),) = op.reads
    assert read.query is not None
    return read.query


def _nothing(op: Nothing | Itself) -> str:
    return f"select {', '.join(_nulls(op.columns))} where false"


def _filter(op: Filter) -> str:
    return f"select * from {_below(op.child)} where {op.condition.sql}"


def _project(op: Project) -> str:
    columns = [f"{e.sql} as {quoted(c.name)}" for c, e in zip(op.columns, op.expressions, strict=True)]
    return f"select {', '.join(columns)} from {_below(op.child)}"


def _matching(on: tuple[tuple[str, str], ...], condition: Expression | None) -> str:
    parts = [f"l.{quoted(left)} = r.{quoted(right)}" for left, right in on]
    if condition:
        parts.append(f"({condition.sql})")
    return " and ".join(parts) or "true"


def _join(op: Join) -> str:
    on = _matching(op.on, op.condition)
    return f"select * from {_below(op.left, 'l')} join {_below(op.right, 'r')} on {on}"


def _outer_join(op: OuterJoin) -> str:
    if op.keeps_right and not _is_full_joinable(op):
        return _full_by_parts(op)
    word = "full" if op.keeps_right else "left"
    on = _matching(op.on, op.condition)
    return f"select * from {_below(op.left, 'l')} {word} join {_below(op.right, 'r')} on {on}"


def _is_full_joinable(op: OuterJoin) -> bool:
    """PostgreSQL makes a FULL JOIN of equalities only."""
    return bool(op.on)


def _full_by_parts(op: OuterJoin) -> str:
    on = _matching(op.on, op.condition)
    left = f"select l.*, r.* from {_below(op.left, 'l')} left join {_below(op.right, 'r')} on {on}"
    nulls = ", ".join(_nulls(op.left.columns))
    alone = f"not exists (select from {_below(op.left, 'l')} where {on})"
    return f"{left} union all select {nulls}, r.* from {_below(op.right, 'r')} where {alone}"


def _mark(op: Mark) -> str:
    on = _matching(op.on, op.condition)
    exists = f"exists (select from {_below(op.right, 'r')} where {on})"
    return f"select l.*, {exists} as {quoted(op.column_.name)} from {_below(op.left, 'l')}"


def _aggregate(op: Aggregate) -> str:
    keys = [f"{key.expression.sql} as {quoted(key.column.name)}" for key in op.keys]
    calls = [f"{call.expression.sql} as {quoted(call.column.name)}" for call in op.calls]
    group = ", ".join(str(number + 1) for number in range(len(op.keys)))
    # without keys there is one group, also where nothing is asked of it
    alone = "" if calls else " having true"
    tail = f" group by {group}" if group else alone
    return f"select {', '.join(keys + calls)} from {_below(op.child)}{tail}"


def _distinct(op: Distinct) -> str:
    return f"select distinct * from {_below(op.child)}"


def _union_all(op: UnionAll) -> str:
    return " union all ".join(f"select * from {_below(arm)}" for arm in op.arms)


def _set_operation(op: SetOperation) -> str:
    word = op.kind.value + (" all" if op.is_all else "")
    return f"select * from {_below(op.left)} {word} select * from {_below(op.right)}"


def _single(op: Single) -> str:
    """The rows, or an error that says what is wrong: the text of it is no number."""
    keys = ", ".join(quoted(name) for name in op.keys)
    over = f"(partition by {keys})" if keys else "()"
    listed = ", ".join(quoted(c.name) for c in op.columns)
    counted = f"select *, count(*) over {over} as rows_in_all from {_below(op.child)}"
    check = f"case when rows_in_all > 1 then ('{MORE_THAN_ONE_ROW}: ' || rows_in_all)::int end"
    return f"select {listed} from ({counted}) as t where ({check}) is null"


def _values(op: Values) -> str:
    if not op.columns:
        return "select"
    names = ", ".join(quoted(c.name) for c in op.columns)
    return f"select * from ({op.query}) as t({names})"


def _table_function(op: TableFunction) -> str:
    names = ", ".join(quoted(c.name) for c in op.made)
    ordinality = " with ordinality" if op.has_ordinality else ""
    join = "left join lateral" if op.keeps_child else "join lateral"
    on = op.condition.sql if op.condition else "true"
    return f"select * from {_below(op.child)} {join} {op.call.sql}{ordinality} as f({names}) on {on}"


def _top(op: Top) -> str:
    order = ", ".join(
        f"{quoted(o.column)}{' desc' if o.is_descending else ''}"
        f" nulls {'first' if o.has_nulls_first else 'last'}"
        for o in op.order
    )
    ordered = f" order by {order}" if order else ""
    if not op.partition:
        offset = f" offset {op.offset}" if op.offset else ""
        ties = "with ties" if op.has_ties else "only"
        limit = f" fetch first {op.limit} rows {ties}" if op.limit is not None else ""
        return f"select * from {_below(op.child)}{ordered}{offset}{limit}"
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
        f" from {_below(op.child)}"
    )
    return f"select {listed} from ({numbered}) as t{where}"


def _window(op: Window) -> str:
    calls = "".join(f", {call.expression.sql} as {quoted(call.column.name)}" for call in op.calls)
    return f"select *{calls} from {_below(op.child)}"


def _recursive(op: Recursive) -> str:
    name, columns = quoted(op.name), ", ".join(quoted(c.name) for c in op.columns)
    base, step = _arm(op.base), _arm(_reading(op.step, op.name))
    word = "union all" if op.is_all else "union"
    return f"with recursive {name}({columns}) as ({base} {word} {step}) select * from {name}"


def _arm(op: Operator) -> str:
    return f"select {', '.join(quoted(c.name) for c in op.columns)} from {_below(op)}"


def _reading(op: Operator, name: str) -> Operator:
    """The tree with the recursion's name, which means something inside of it only, where its rows go."""
    if isinstance(op, Itself) and op.name == name:
        return Values(f"select * from {quoted(name)}", op.columns)
    return with_children(op, tuple(_reading(child, name) for child in op.children))


def _nulls(columns: tuple[Column, ...]) -> list[str]:
    return [f"null::{c.type.text} as {quoted(c.name)}" for c in columns]


_LOWERINGS: Mapping[type[Operator], Callable[[Any], str]] = {
    Aggregate: _aggregate,
    Answer: _answer,
    Distinct: _distinct,
    Evaluated: lambda op: postgres_sql(op.child),
    Filter: _filter,
    Itself: _nothing,
    Join: _join,
    Leaf: _leaf,
    Mark: _mark,
    Nothing: _nothing,
    OuterJoin: _outer_join,
    Project: _project,
    Recursive: _recursive,
    Scan: _scan,
    SetOperation: _set_operation,
    Single: _single,
    TableFunction: _table_function,
    Top: _top,
    UnionAll: _union_all,
    Values: _values,
    Window: _window,
}
