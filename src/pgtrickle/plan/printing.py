"""Operators as lines of text, for explain and for golden files."""

from __future__ import annotations

from collections.abc import Iterator

from pgtrickle.plan.expressions import Expression
from pgtrickle.plan.kinds import kind_of
from pgtrickle.plan.operators import (
    Aggregate,
    Column,
    Distinct,
    Evaluated,
    Filter,
    Itself,
    Join,
    Mark,
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


def tree_lines(op: Operator, *, has_kinds: bool = True, depth: int = 0) -> Iterator[str]:
    """One line per operator, children indented; with the kind of its rule if asked."""
    kind = f"  [{kind_of(op).value}]" if has_kinds else ""
    yield f"{'  ' * depth}{label(op)}{kind}"
    for child in op.children:
        yield from tree_lines(child, has_kinds=has_kinds, depth=depth + 1)


def label(op: Operator) -> str:
    """One operator in one line."""
    match op:
        case Scan():
            return f"scan {op.source.name} as {op.alias}{_where(op)}"
        case Filter():
            return f"filter {op.condition}"
        case Project():
            return f"project {', '.join(_named(c.name, str(e)) for c, e in _outputs(op))}"
        case Join():
            return f"join {_condition(op)}"
        case OuterJoin():
            return f"{'full' if op.keeps_right else 'left'} join {_condition(op)}"
        case Mark():
            return f"mark {op.column_.name}: has a match {_condition(op)}"
        case Aggregate():
            calls = ", ".join(str(call.expression) for call in op.calls)
            keys = ", ".join(str(key.expression) for key in op.keys)
            return f"aggregate by ({keys}){': ' if calls else ''}{calls}"
        case Window():
            calls = ", ".join(str(call.expression) for call in op.calls)
            return f"window by ({', '.join(op.partition)}): {calls}"
        case Top():
            return _top(op)
        case SetOperation():
            return op.kind.value + (" all" if op.is_all else "")
        case Single():
            return f"one row at most for each ({', '.join(op.keys)})" if op.keys else "one row at most"
        case TableFunction():
            return f"rows of {op.call}" + (f" where {op.condition}" if op.condition else "")
        case Values():
            return f"values {op.query[:60]}"
        case Recursive():
            return f"recursion {op.name}, union{' all' if op.is_all else ''} of its base and its step"
        case Itself():
            return f"rows of {op.name} so far"
        case Evaluated():
            return f"evaluated by PostgreSQL, because of {op.because}"
        case Distinct():
            return "distinct"
        case UnionAll():
            return "union all"
        case _:
            raise TypeError(type(op).__name__)


def _top(op: Top) -> str:
    order = ", ".join(f"{o.column}{' desc' if o.is_descending else ''}" for o in op.order)
    of = f" of each ({', '.join(op.partition)})" if op.partition else ""
    after = f" after {op.offset}" if op.offset else ""
    return f"first {'all' if op.limit is None else op.limit}{after}{of} in order of ({order})"


def _where(op: Scan) -> str:
    return f" where {op.condition}" if op.condition else ""


def _outputs(op: Project) -> Iterator[tuple[Column, Expression]]:
    return zip(op.columns, op.expressions, strict=True)


def _named(name: str, text: str) -> str:
    return text if name == text else f"{text} as {name}"


def _condition(op: Join | OuterJoin | Mark) -> str:
    parts = [f"{left} = {right}" for left, right in op.on]
    if op.condition:
        parts.append(str(op.condition))
    return f"on {' and '.join(parts)}" if parts else "of all pairs"
