"""Runs the sidecar: refreshes all stream tables on their schedules."""

from __future__ import annotations

import threading
from collections.abc import Callable

from pgtrickle.catalog.install import check_may_serve, check_original
from pgtrickle.model.settings import Settings
from pgtrickle.postgres.connection import check_writable
from pgtrickle.refresh.engine import Engine
from pgtrickle.scheduler.service.loop import Loop, RefreshEvent

__all__ = ["RefreshEvent", "run"]


def run(
    engine: Engine,
    stop: threading.Event,
    on_event: Callable[[RefreshEvent], None] | None = None,
    settings: Settings = Settings(),  # noqa: B008 (it is frozen)
) -> None:
    """Refresh every stream table of the database on its schedule until `stop` is set."""
    with engine.connection() as connection:
        check_writable(connection)
        check_may_serve(connection)
        check_original(connection)
    # start Spark now, so that no refresh waits for it
    _ = engine.spark
    Loop(
        engine,
        on_event or (lambda event: None),
        settings.max_consecutive_errors,
        settings.worker_pool_size,
        settings.listen_dsn,
    ).serve(stop)
