"""Measures the CPU time of the sidecar: of Python, of the JVM, and of the statements of its connections."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_TICKS: Final = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_STAT: Final = Path("/proc/stat")


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(slots=True)
class CpuUsage:
    """What the sidecar and others have used since the last call. `jvm` gives the process of the JVM."""

    jvm: Callable[[], int | None] = lambda: None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _statements: float = 0.0
    _own: float | None = None
    _machine: float | None = None
    _at: float = 0.0

    def note_statements(self, seconds: float) -> None:
        """Add how long the statements of a refresh took; all that can be seen of a remote server."""
        with self._lock:
            self._statements += seconds

    def take(self, now: float) -> tuple[float, float]:
        """The CPU seconds that the sidecar has used since the last call, and the cores that others use."""
        own, machine = self._own_seconds(), machine_seconds()
        with self._lock:
            statements, self._statements = self._statements, 0.0
        used = statements + (max(own - self._own, 0.0) if self._own is not None else 0.0)
        passed, others = now - self._at, 0.0
        if machine is not None and self._machine is not None and self._own is not None and passed > 0:
            others = max(machine - self._machine - used, 0.0) / passed
        self._own, self._machine, self._at = own, machine, now
        return used, others

    def _own_seconds(self) -> float:
        times = os.times()
        process = self.jvm()
        return times.user + times.system + (process_seconds(process) if process is not None else 0.0)


def process_seconds(process: int) -> float:
    """The CPU seconds of a process; 0 where the system does not say."""
    with suppress(OSError, ValueError, IndexError):
        # the name of the program, in parentheses, may contain spaces
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS
    return 0.0


def machine_seconds() -> float | None:
    """The CPU seconds that all processes of the machine have used; None where the system does not say."""
    with suppress(OSError, ValueError, IndexError):
        user, nice, system, _idle, _wait, irq, soft_irq = map(int, _STAT.read_text().split()[1:8])
        return (user + nice + system + irq + soft_irq) / _TICKS
    return None
