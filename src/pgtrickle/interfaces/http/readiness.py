"""Whether the sidecar of this process can do its work, for orchestrators."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pgtrickle.commands.connections import open_installed
from pgtrickle.model.errors import NotInstalled, PgTrickleError

if TYPE_CHECKING:
    from pgtrickle.commands.run import Loop
    from pgtrickle.refresh.engine import Engine

KEPT_SECONDS: Final = 2.0
"""How long an answer is kept, so that many probes cost one connection."""
SILENT_SECONDS: Final = 30.0
"""A scheduler that has not polled for longer does not work."""
OK: Final = "ok"


@dataclass(slots=True)
class Readiness:
    """Checks the database, the scheduler and Spark."""

    dsn: str
    loop: Loop | None = None
    engine: Engine | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _ticks: float = 0.0
    _ticked_at: float = float("-inf")
    _checked_at: float = float("-inf")
    _checks: Mapping[str, str] = field(default_factory=dict)

    def checks(self) -> Mapping[str, str]:
        """Each check with `ok`, or with what is wrong."""
        with self._lock:
            now = time.monotonic()
            if now - self._checked_at > KEPT_SECONDS:
                self._checks = {**self._database(), **self._scheduler(), **self._spark()}
                self._checked_at = time.monotonic()
            return self._checks

    def _database(self) -> dict[str, str]:
        try:
            with open_installed(self.dsn):
                return {"database": OK, "installation": OK}
        except NotInstalled as error:
            return {"database": OK, "installation": error.message}
        except PgTrickleError as error:
            return {"database": error.message, "installation": "unknown"}

    def _scheduler(self) -> dict[str, str]:
        if self.engine is None:
            return {}
        if self.loop is None:
            return {"scheduler": "it has not started yet"}
        ticks, now = self.loop.vitals.values().get("ticks", 0), time.monotonic()
        if ticks != self._ticks:
            self._ticks, self._ticked_at = ticks, now
        if not ticks:
            return {"scheduler": "it has not polled yet"}
        is_silent = now - self._ticked_at > SILENT_SECONDS
        return {"scheduler": f"it has not polled for {now - self._ticked_at:.0f} s" if is_silent else OK}

    def _spark(self) -> dict[str, str]:
        if self.engine is None:
            return {}
        supply = self.engine.supply
        if supply.failed_start is not None:
            return {"spark": "it could not be started"}
        return {"spark": "starting" if supply.current is None else OK}


def is_ready(checks: Mapping[str, str]) -> bool:
    """Whether every check is fine. Spark may still be starting, because not all refreshes need it."""
    return all(state == OK or (name == "spark" and state == "starting") for name, state in checks.items())
