"""The stable text of an operator tree, for explain, logs and golden files."""

from __future__ import annotations

from collections.abc import Iterator

from pgtrickle.plan.deltas.rules import kind_of
from pgtrickle.plan.expressions import Expression
from pgtrickle.plan.operators import (
    Aggregate,
    Change,
    Column,
    Distinct,
    Filter,
    Input,
    Join,
    Negate,
    Operator,
    Past,
    Project,
    Scan,
    SemiJoin,
    UnionAll,
)
from pgtrickle.plan.program import ReadKind


def tree_lines(op: Operator, *, has_kinds: bool = True, depth: int = 0) -> Iterator[str]:
    """One line per operator, children indented; with the kind of its delta rule if asked."""
    kind = f"  [{kind_of(op).value}]" if has_kinds else ""
    yield f"{'  ' * depth}{label(op)}{kind}"
    for child in op.children:
        yield from tree_lines(child, has_kinds=has_kinds, depth=depth + 1)


def label(op: Operator) -> str:
    """One operator in one line."""
    match op:
        case Scan():
            return f"scan {op.source.name} as {op.alias}{_where(op)}"
        case Change():
            return f"Δ{op.scan.alias}"
        case Past():
            return f"{op.scan.alias}@old"
        case Input():
            version = "Δ" if op.read.kind is ReadKind.CHANGES else ""
            return f"{version}{op.read.name}"
        case Filter():
            return f"filter {op.condition}"
        case Project():
            return f"project {', '.join(_named(c.name, str(e)) for c, e in _outputs(op))}"
        case Join():
            return f"join {_condition(op)}"
        case SemiJoin():
            return f"restrict to keys ({', '.join(map(str, op.on))})"
        case Aggregate():
            calls = ", ".join(str(call.expression) for call in op.calls)
            keys = ", ".join(str(key.expression) for key in op.keys)
            return f"aggregate by ({keys}){': ' if calls else ''}{calls}"
        case Distinct():
            return "distinct"
        case UnionAll():
            return "union all"
        case Negate():
            return "minus"
        case _:
            raise TypeError(type(op).__name__)


def _where(op: Scan) -> str:
    return f" where {op.condition}" if op.condition else ""


def _outputs(op: Project) -> Iterator[tuple[Column, Expression]]:
    return zip(op.columns, op.expressions, strict=True)


def _named(name: str, text: str) -> str:
    return text if name == text else f"{text} as {name}"


def _condition(op: Join) -> str:
    parts = [f"{left} = {right}" for left, right in op.on]
    if op.condition:
        parts.append(str(op.condition))
    return f"on {' and '.join(parts)}" if parts else "of all pairs"
