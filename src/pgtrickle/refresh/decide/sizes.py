"""Small or large: whether a program runs in the driver or in tasks, by the size of what it reads."""

from __future__ import annotations

from collections.abc import Sequence

from pgtrickle.changes.source_window import SourceWindow
from pgtrickle.model.settings import SparkPath
from pgtrickle.plan.program import Program
from pgtrickle.plan.reads import ReadKind
from pgtrickle.postgres.connection import Connection
from pgtrickle.refresh.compilation import Compilation
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.session import Session


def is_large_window(engine: Engine, pending: list[SourceWindow]) -> bool:
    """Whether a window is large enough for tasks."""
    return _is_large(engine, sum(window.rows for window in pending), engine.large_window)


def is_large_load(engine: Engine, session: Session, found: Compilation) -> bool:
    """Whether a load is large enough for tasks."""
    tables = [source.table.sql for source in found.sources]
    return _is_large(engine, estimated_rows(session.read, tables), engine.large_table)


def spares_spark(engine: Engine) -> bool:
    """Whether PostgreSQL should do alone what it can: tasks would compete with it for the same machine."""
    return engine.path is SparkPath.AUTO and engine.has_embedded_spark


def loads_in_postgres(engine: Engine, connection: Connection, found: Compilation) -> bool:
    """Whether PostgreSQL evaluates a load where it writes the rows.

    It does if many tasks would have to, and they would run on one machine. Then Spark can only add the way of
    each row to it and back. On a cluster, the executors take the work off PostgreSQL.
    """
    if found.compiled is None or engine.path is not SparkPath.AUTO:
        return False
    tables = [source.table.sql for source in found.sources]
    # Spark may have to be started to know where it runs
    return estimated_rows(connection, tables) >= engine.large_table and engine.has_embedded_spark


def whole_rows(engine: Engine, session: Session, program: Program) -> int | None:
    """How many rows a program reads from sources that no key restricts, if they are enough for tasks.

    Rows that it reads by keys are counted while they are read.
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
    """An estimate from the size of the tables, at a hundred bytes a row: there may be no statistics yet."""
    row = connection.execute(
        "select coalesce(sum(pg_relation_size(t.relid)), 0) / 100"
        " from unnest(%s::regclass[]) r(id) left join lateral pg_partition_tree(r.id) p on true,"
        " lateral (select coalesce(p.relid, r.id)) t(relid)",
        (list(tables),),
    ).fetchone()
    assert row is not None
    return int(row[0])
