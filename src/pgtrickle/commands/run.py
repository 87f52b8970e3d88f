"""Serving schedules until told to stop."""

from __future__ import annotations

import threading
from collections.abc import Callable

from pgtrickle.catalog.install import check_installed
from pgtrickle.postgres.connection import check_writable
from pgtrickle.refresh.engine import Engine
from pgtrickle.scheduler.backoff import MAX_CONSECUTIVE_ERRORS
from pgtrickle.scheduler.loop import Loop, RefreshEvent

__all__ = ["MAX_CONSECUTIVE_ERRORS", "RefreshEvent", "run"]


def run(
    engine: Engine,
    stop: threading.Event,
    on_event: Callable[[RefreshEvent], None] | None = None,
    max_consecutive_errors: int = MAX_CONSECUTIVE_ERRORS,
) -> None:
    """Keep every stream table of the database fresh until `stop` is set."""
    with engine.connection() as connection:
        check_writable(connection)
        check_installed(connection)
    # no refresh shall pay for the start of Spark
    _ = engine.spark
    Loop(engine, on_event or (lambda event: None), max_consecutive_errors).serve(stop)
