"""Operators once more, under names of their own."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any

from pgtrickle.model.carrier import Carrier
from pgtrickle.model.source import PgType, Source
from pgtrickle.plan.analysis.block import Block
from pgtrickle.plan.analysis.context import Context
from pgtrickle.plan.expressions import Expression, column
from pgtrickle.plan.operators import Operator, Scan

_KEPT = frozenset({"function", "query", "because"})
"""Fields whose text is no name of the plan."""


def copy_operator(operator: Operator, context: Context) -> tuple[Operator, dict[str, str]]:
    """A copy whose scans and columns have fresh names, and the new name of each old one."""
    names: dict[str, str] = {}
    for part in operator.walk():
        if isinstance(part, Scan):
            context.count_relation()
            names[part.alias] = context.unique(part.alias)
        for name in _names_at(part):
            if name not in names:
                names[name] = context.unique(name)
    return _renamed(operator, names), names


def with_numbered_names(operator: Operator) -> Operator:
    """A copy in which all names are numbers: copies of the same operator are equal then."""
    names: dict[str, str] = {}
    for part in operator.walk():
        aliases = (part.alias,) if isinstance(part, Scan) else ()
        for name in (*aliases, *_names_at(part)):
            names.setdefault(name, f"n{len(names)}")
    return _renamed(operator, names)


def _names_at(part: Operator) -> tuple[str, ...]:
    given = part.given if isinstance(part, Scan) else ()
    return (*given, *(c.name for c in part.columns))


def _renamed(operator: Operator, names: dict[str, str]) -> Operator:
    copy = _rename(operator, names)
    assert isinstance(copy, Operator)
    return copy


def copy_block(block: Block, context: Context) -> Block:
    """A copy of a block; columns of the surrounding query stay what they are."""
    operator, names = copy_operator(block.operator, context)
    return replace(
        block,
        operator=operator,
        outputs=tuple((name, rename_columns(expression, names)) for name, expression in block.outputs),
        correlated=tuple(rename_columns(condition, names) for condition in block.correlated),
        condition=rename_columns(block.condition, names) if block.condition else None,
    )


def rename_columns(expression: Expression, names: dict[str, str]) -> Expression:
    """The expression over the columns' new names."""
    return expression.substitute({old: column(new) for old, new in names.items()})


def _rename(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, Expression):
        return rename_columns(value, names)
    if isinstance(value, tuple):
        return tuple(_rename(part, names) for part in value)
    if isinstance(value, (PgType, Carrier, Source, Enum)) or not is_dataclass(value):
        return value
    changed = {f.name: _rename(getattr(value, f.name), names) for f in fields(value) if f.name not in _KEPT}
    return replace(value, **changed)  # type: ignore[type-var]
