"""The CPU budget of a process: measured at each poll, and shared by all databases that it serves."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Final

from pgtrickle.pipeline.supply import SparkSupply
from pgtrickle.scheduler.policy.cpu_budget import Activity, CpuBudget
from pgtrickle.scheduler.service.cpu_usage import CpuUsage, cores

LEAST_SECONDS: Final = 0.05
"""CPU time is counted in hundredths of a second, so it is not measured more often."""


@dataclass(slots=True)
class Budgeting:
    """Safe to use from many threads."""

    budget: CpuBudget
    usage: CpuUsage
    _activity: Activity = field(default_factory=Activity)
    _wrote: bool = False
    _measured_at: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(cls, supply: SparkSupply, share: float | None) -> Budgeting:
        """The budget of this process; None is half of the cores, and a sixth while most are in use."""
        count = cores()

        def jvm() -> int | None:
            spark = supply.current
            return spark.process_id if spark is not None else None

        if share is None:
            return cls(CpuBudget(count / 2, count, crowded_share=count / 6), CpuUsage(jvm))
        return cls(CpuBudget(share, count), CpuUsage(jvm))

    def note_poll(self, *, wrote: bool) -> None:
        """Measure, and note whether a poll found that the application has written."""
        now = time.monotonic()
        with self._lock:
            self._wrote = self._wrote or wrote
            if now - self._measured_at < LEAST_SECONDS:
                return
            self._measured_at = now
            used, others = self.usage.take(now)
            self._activity = self._activity.after(wrote=self._wrote, others=others)
            self._wrote = False
            activity = self._activity
            self.budget = self.budget.after(now, used, is_idle=activity.is_idle, others=activity.others)

    def report(self) -> dict[str, float]:
        """The budget for the vitals."""
        found = self.budget
        return {
            "cpu_share": round(found.allowed, 3),
            "cpu_used": round(found.used, 3),
        }
