"""Small or large: which path a program takes, by the rows at hand."""

from __future__ import annotations

from collections.abc import Sequence

from pgtrickle.changes.window import SourceWindow
from pgtrickle.model.settings import SparkPath
from pgtrickle.plan.program import Program
from pgtrickle.plan.reads import ReadKind
from pgtrickle.postgres.connection import Connection
from pgtrickle.refresh.compiling import Compilation
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.session import Session


def is_large_window(engine: Engine, pending: list[SourceWindow]) -> bool:
    """Whether a window is better spread over tasks."""
    return _is_large(engine, sum(window.rows for window in pending), engine.large_window)


def is_large_load(engine: Engine, session: Session, found: Compilation) -> bool:
    """Whether a first load is better spread over tasks."""
    tables = [source.table.sql for source in found.sources]
    return _is_large(engine, estimated_rows(session.read, tables), engine.large_table)


def whole_rows(engine: Engine, session: Session, program: Program) -> int | None:
    """How many rows a program reads of sources that no key restricts, if that is better spread over tasks.

    What it reads by keys is counted while it is read.
    """
    tables = [
        read.source.table.sql
        for read in program.reads
        if read.kind is ReadKind.ROWS and not read.lookups and read.source is not None
    ]
    if not tables or engine.path is not SparkPath.AUTO or not session.can_share:
        return None
    rows = estimated_rows(session.read, tables)
    return rows if rows >= engine.large_reach else None


def _is_large(engine: Engine, rows: int, limit: int) -> bool:
    if engine.path is SparkPath.AUTO:
        return rows >= limit
    return engine.path is SparkPath.DISTRIBUTED


def estimated_rows(connection: Connection, tables: Sequence[str]) -> int:
    """What the size of the tables suggests, at a hundred bytes a row: statistics may be missing yet."""
    row = connection.execute(
        "select coalesce(sum(pg_relation_size(t.relid)), 0) / 100"
        " from unnest(%s::regclass[]) r(id) left join lateral pg_partition_tree(r.id) p on true,"
        " lateral (select coalesce(p.relid, r.id)) t(relid)",
        (list(tables),),
    ).fetchone()
    assert row is not None
    return int(row[0])
