"""How `run` starts Spark, and what stops it."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING

from pgtrickle.interfaces.cli.log_lines import SidecarLog
from pgtrickle.model.settings import Settings

if TYPE_CHECKING:
    from pgtrickle.pipeline.session import Spark


@dataclass(slots=True)
class SparkStart:
    """Starts Spark and reports how far it is; called again after Spark has died."""

    settings: Settings
    spark_settings: dict[str, str]
    began: float
    log: SidecarLog
    is_ready: bool = False

    def __call__(self) -> Spark:
        # we report a dead JVM ourselves, and only once
        logging.getLogger().addFilter(lambda record: record.msg != "Exception while sending command.")
        is_first = not self.is_ready
        if is_first:
            self.log.announce(
                f"Warming up: Spark on {self.settings.spark_master} is starting."
                " Refreshes that need no Spark already run."
            )
        from pgtrickle.pipeline.session import open_spark

        spark = open_spark(
            self.settings.spark_master,
            configuration=self.spark_settings,
            cache_directory=self.settings.cache_directory(os.environ),
        )
        spark.warm()
        threading.Thread(target=_warm_further, args=(spark,), name="spark warming", daemon=True).start()
        if is_first:
            self.is_ready = True
            why_jobs = spark.programs.why_jobs
            self.log.announce(
                f"Ready after {time.monotonic() - self.began:.1f} s. Small changes are computed"
                f" {'in place' if why_jobs is None else f'as Spark jobs, because {why_jobs}'}."
            )
        return spark


def _warm_further(spark: Spark) -> None:
    # it fails if Spark is stopped meanwhile, and nothing depends on it
    with suppress(Exception):
        spark.warm_further()


def stop_on_signals(stop: threading.Event, start: SparkStart, log: SidecarLog) -> None:
    """Finish the running refreshes at the first signal; stop at once at the second, which loses nothing.

    While Spark starts, the first signal stops at once.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.is_set() or not start.is_ready:
            stop.set()
            if number == signal.SIGINT:
                raise KeyboardInterrupt
            sys.exit(128 + number)
        log.announce("Stopping after the running refreshes. Press Ctrl-C again to stop now.")
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handle)
