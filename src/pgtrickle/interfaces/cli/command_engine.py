"""The engine that a single command opens and closes again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pgtrickle.commands.connections import check_known, open_installed
from pgtrickle.interfaces.cli.progress import ProgressLine
from pgtrickle.model.settings import Settings

if TYPE_CHECKING:
    from pgtrickle.pipeline.session import Spark
    from pgtrickle.refresh.engine import Engine


def check_arguments(dsn: str, name: str | None) -> None:
    """Raise if the address or the name is wrong, before anything slow starts."""
    with open_installed(dsn) as connection:
        if name is not None:
            check_known(connection, name)


@contextmanager
def open_engine(settings: Settings, step: str, loading: str | None = None) -> Iterator[Engine]:
    """Open an engine for one command, and show on the terminal what it does."""
    with ProgressLine(step, settings.dsn, loading) as progress:
        from pgtrickle.commands.engine import build_engine

        def start() -> Spark:
            from pgtrickle.pipeline.session import open_spark

            progress.note("No sidecar is running, so this command starts its own Spark.")
            progress.step("Starting Spark")
            spark = open_spark(settings.spark_master, cache_directory=settings.cache_directory(os.environ))
            progress.step(step)
            return spark

        engine = build_engine(settings, start)
        try:
            yield engine
        finally:
            engine.close()
