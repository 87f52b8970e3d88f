"""The priority of the sidecar's processes: an application on the same machine goes first."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

from pgtrickle.model.settings import Settings
from pgtrickle.scheduler.service.cpu_usage import cores

NICE: Final = 10


def yield_to_others(settings: Settings) -> None:
    """Lower the priority of this process, and of its JVM, unless it may use all cores anyway."""
    if settings.cpu_share is None or settings.cpu_share < cores():
        with suppress(OSError, AttributeError):
            os.setpriority(os.PRIO_PROCESS, 0, max(NICE, os.getpriority(os.PRIO_PROCESS, 0)))
