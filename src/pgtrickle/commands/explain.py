"""Explains how a stream table is refreshed, and why it is not incremental if it is not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape

from pgtrickle.catalog.install import check_original, may_serve
from pgtrickle.catalog.tables import find, find_id
from pgtrickle.commands.validate import read_definition
from pgtrickle.model.names import RelationName
from pgtrickle.model.records import Record
from pgtrickle.model.source import Source, SourceKind
from pgtrickle.model.stream_table import RefreshMode
from pgtrickle.plan.explain import compared_lines
from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.statements import load
from pgtrickle.refresh.compilation import Compilation, compile_definition
from pgtrickle.refresh.decide.cost_model import cost_lines
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.plan_text import plan_lines
from pgtrickle.refresh.prepare import prepare


@dataclass(frozen=True, slots=True, repr=False)
class Explanation(Record):
    """How a stream table is refreshed. It prints as `text`: the plan, then what AUTO has measured so far."""

    name: RelationName
    asked_mode: RefreshMode
    effective_mode: RefreshMode
    reason: str
    text: str

    def __repr__(self) -> str:
        return self.text

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.text)}</pre>"


def explain(engine: Engine, name: str) -> Explanation:
    """Compile the query unless it is cached, and describe what a refresh does."""
    with engine.connection() as connection:
        check_original(connection)
        if not may_serve(connection):
            return _explain_as_reader(connection, name)
        found = find(connection, name)
    member = prepare(engine, found.id)
    table, compilation = member.table, member.compilation
    with engine.connection() as connection:
        compilation = engine.with_operators(connection, table)
        has_choice = table.mode is RefreshMode.AUTO and compilation.compiled is not None
        costs = cost_lines(engine.costs.of(connection, table.id)) if has_choice else []
        kept = connection.execute(
            load("pgtrickle.commands", "sql/kept_results.sql"), {"id": table.id}
        ).fetchall()
        connection.commit()
    described = _explanation(table.name, compilation)
    sizes = [f"  {name}: about {rows:,} rows, {size} with its state" for name, rows, size in kept]
    headed = ["", "size of the inner results:", *sizes] if sizes else []
    return replace(described, text="\n".join([described.text, *headed, *costs]))


def _explain_as_reader(connection: Connection, name: str) -> Explanation:
    """The same for a role that may use neither caches nor copies: definitions are readable by all."""
    with connection.transaction(force_rollback=True):
        definition = read_definition(connection, find_id(connection, name))
        compilation = compile_definition(connection, definition)
    described = _explanation(definition.name, compilation)
    compared = compared_lines(_with_copy(source) for source in compilation.sources)
    return replace(described, text="\n".join([described.text, *compared]))


def _with_copy(source: Source) -> Source:
    """The source with the name of our copy of it, if it is compared with one."""
    if source.kind not in (SourceKind.TABLE, SourceKind.STREAM_TABLE):
        return replace(source, copy=RelationName("pgtrickle_state", f"copy_of_{source.relation}"))
    return source


def _explanation(name: RelationName, compilation: Compilation) -> Explanation:
    lines = [
        f"stream table: {name}",
        f"refresh mode: {compilation.effective_mode.value} (requested: {compilation.mode.value})",
        *plan_lines(compilation),
    ]
    return Explanation(
        name, compilation.mode, compilation.effective_mode, compilation.reason, "\n".join(lines)
    )
