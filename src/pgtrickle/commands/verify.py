"""Compares stream tables with PostgreSQL's own result of their query, by an engine of this process."""

from __future__ import annotations

from pgtrickle.catalog.install import check_may_serve, check_original
from pgtrickle.catalog.tables import find, stream_tables
from pgtrickle.model.comparison import VerifiedTable, require_compared
from pgtrickle.model.settings import REFRESH_TIMEOUT
from pgtrickle.refresh.engine import Engine
from pgtrickle.scheduler.service.compare import compare
from pgtrickle.scheduler.service.load_definitions import load_graph

__all__ = ["VerifiedTable", "verify"]


def verify(
    engine: Engine, name: str | None, seconds: float | None = REFRESH_TIMEOUT.default
) -> list[VerifiedTable]:
    """Compare one stream table, or all populated ones, by multiset equality.

    A comparison that takes longer than `seconds` is canceled and raises `VerifyTimedOut`; None is no limit.
    A stream table that is suspended, or reads one that is, cannot be compared: that is an error, raised after
    all others were compared.
    """
    with engine.connection() as connection:
        check_original(connection)
        check_may_serve(connection)
        tables = (find(connection, name),) if name else stream_tables(connection)
        graph = load_graph(connection)
    return require_compared(
        [compare(engine, table, graph, seconds) for table in tables if table.is_populated]
    )
