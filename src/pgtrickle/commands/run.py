"""Serving schedules until told to stop."""

from __future__ import annotations

import threading
from collections.abc import Callable

from pgtrickle.catalog.install import check_may_serve, check_original
from pgtrickle.postgres.connection import check_writable
from pgtrickle.refresh.engine import Engine
from pgtrickle.scheduler.backoff import MAX_CONSECUTIVE_ERRORS
from pgtrickle.scheduler.loop import WORKERS, Loop, RefreshEvent

__all__ = ["MAX_CONSECUTIVE_ERRORS", "RefreshEvent", "run"]


def run(
    engine: Engine,
    stop: threading.Event,
    on_event: Callable[[RefreshEvent], None] | None = None,
    max_consecutive_errors: int = MAX_CONSECUTIVE_ERRORS,
    worker_pool_size: int = WORKERS,
    listen_dsn: str | None = None,
) -> None:
    """Keep every stream table of the database fresh until `stop` is set.

    `worker_pool_size` threads refresh at the same time; 0 starts one for each task. `listen_dsn` leads
    straight to the server where the engine's own address is that of a pooler.
    """
    with engine.connection() as connection:
        check_writable(connection)
        check_may_serve(connection)
        check_original(connection)
    # no refresh shall pay for the start of Spark
    _ = engine.spark
    Loop(
        engine,
        on_event or (lambda event: None),
        max_consecutive_errors,
        worker_pool_size,
        listen_dsn,
    ).serve(stop)
