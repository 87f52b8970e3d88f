"""Runs the sidecar: refreshes all stream tables on their schedules."""

from __future__ import annotations

import threading
from collections.abc import Callable

from pgtrickle.catalog.install import check_may_serve, check_original
from pgtrickle.model.settings import Settings
from pgtrickle.postgres.connection import check_writable
from pgtrickle.refresh.engine import Engine
from pgtrickle.scheduler.service.budgeting import Budgeting
from pgtrickle.scheduler.service.loop import EventKind, Loop, RefreshEvent
from pgtrickle.scheduler.service.threshold_alerts import alert_limits

__all__ = ["EventKind", "Loop", "RefreshEvent", "run"]


def run(
    engine: Engine,
    stop: threading.Event,
    on_event: Callable[[RefreshEvent], None] | None = None,
    settings: Settings = Settings(),  # noqa: B008 (it is frozen)
    watch: Callable[[Loop], None] | None = None,
) -> None:
    """Refresh every stream table of the database on its schedule until `stop` is set.

    What needs no Spark is served while Spark starts. `watch` is called once with the loop before it starts.
    """
    with engine.connection() as connection:
        check_writable(connection)
        check_may_serve(connection)
        check_original(connection)
    engine.supply.begin()
    loop = Loop(
        engine,
        on_event or (lambda event: None),
        settings.max_consecutive_errors,
        settings.worker_pool_size,
        settings.listen_dsn,
        alert_limits(settings),
        budget=Budgeting.of(engine.supply, settings.cpu_share),
    )
    if watch is not None:
        watch(loop)
    loop.serve(stop)
