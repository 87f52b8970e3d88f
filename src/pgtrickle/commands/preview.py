"""Shows what the next refresh of a stream table would change, by an engine of this process."""

from __future__ import annotations

from pgtrickle.catalog.install import check_may_serve, check_original
from pgtrickle.catalog.tables import find_id
from pgtrickle.model.changes import Preview
from pgtrickle.refresh.engine import Engine
from pgtrickle.scheduler.service.previews import preview_table

__all__ = ["Preview", "preview"]

SECONDS = 30.0


def preview(engine: Engine, name: str, seconds: float = SECONDS) -> Preview:
    """What the next refresh would do; a preview that takes longer than `seconds` is canceled."""
    with engine.connection() as connection:
        check_original(connection)
        check_may_serve(connection)
        table = find_id(connection, name)
    return preview_table(engine, table, seconds)
