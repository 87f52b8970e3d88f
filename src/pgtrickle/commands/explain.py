"""Explains how a stream table is refreshed, and why it is not incremental if it is not."""

from __future__ import annotations

from dataclasses import dataclass

from pgtrickle.catalog.install import check_original
from pgtrickle.catalog.tables import find
from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import RefreshMode
from pgtrickle.plan.compile import Compiled
from pgtrickle.plan.explain import compared_lines, explanation
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.prepare import prepare

CHOICE = (
    "each refresh: differential, unless earlier ones of such windows show that full is faster;"
    " the history tells which it was, and why"
)


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a stream table is refreshed. `text` is the whole plan and does not change between runs."""

    name: RelationName
    asked_mode: RefreshMode
    effective_mode: RefreshMode
    reason: str
    text: str

    def __str__(self) -> str:
        return self.text


def explain(engine: Engine, name: str) -> Explanation:
    """Compile the query unless it is cached, and describe what a refresh does."""
    with engine.connection() as connection:
        check_original(connection)
        found = find(connection, name)
    member = prepare(engine, found.id)
    table, compilation = member.table, member.compilation
    with engine.connection() as connection:
        compilation = engine.with_operators(connection, table)
        connection.commit()
    lines = [
        f"stream table: {table.name}",
        f"refresh mode: {compilation.effective_mode.value} (asked for: {table.mode.value})",
    ]
    if compilation.compiled is None:
        lines.append(f"because: {compilation.reason}")
        lines.append("result: PostgreSQL evaluates the whole query, and the difference is applied")
        lines += compared_lines(compilation.sources)
    elif isinstance(compilation.compiled, Compiled):
        if table.mode is RefreshMode.AUTO:
            lines.append(CHOICE)
        lines.append(explanation(compilation.compiled))
    return Explanation(
        table.name, table.mode, compilation.effective_mode, compilation.reason, "\n".join(lines)
    )
