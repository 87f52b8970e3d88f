"""Watches how much log the replication slot holds back: warns, and gives it up before the disk is full."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pgtrickle.capture.wal.slot import SlotState, drop_slot, slot_state
from pgtrickle.catalog.alerts import alert
from pgtrickle.model.limit_settings import MAX_SLOT_WAL_MB, SLOT_LAG_WARNING_THRESHOLD_MB
from pgtrickle.postgres.connection import Connection

MEGABYTE: Final = 1 << 20
PAUSE: Final = "1 hour"
"""How long sources stay with triggers after a slot was given up."""


@dataclass(slots=True)
class SlotAlerts:
    """Sends `slot_lag_warning` once when an episode begins. 0 megabytes is no limit."""

    warning_mb: int = SLOT_LAG_WARNING_THRESHOLD_MB.default
    most_mb: int = MAX_SLOT_WAL_MB.default
    _is_warned: bool = False

    def check(self, connection: Connection) -> None:
        """Warn if the slot holds back much log; give it up if that is too much."""
        state = slot_state(connection)
        if state is None:
            return
        if self.most_mb and state.retained > self.most_mb * MEGABYTE:
            self._give_up(connection, state)
            return
        is_late = bool(self.warning_mb) and state.retained > self.warning_mb * MEGABYTE
        if is_late and not self._is_warned:
            alert(connection, "slot_lag_warning", **self._facts(state), limit_mb=self.warning_mb)
        elif self._is_warned and not is_late:
            alert(connection, "slot_lag_resolved", **self._facts(state), limit_mb=self.warning_mb)
        self._is_warned = is_late

    def _give_up(self, connection: Connection, state: SlotState) -> None:
        """Drop the slot: a full disk of the server is worse than a full refresh."""
        with connection.transaction():
            connection.execute(
                "update pgtrickle.pgt_sources set wal_retry_at = clock_timestamp() + %s::interval"
                " where capture = 'wal'",
                (PAUSE,),
            )
            alert(connection, "slot_given_up", **self._facts(state), limit_mb=self.most_mb)
        drop_slot(connection)
        self._is_warned = False

    def _facts(self, state: SlotState) -> dict[str, int]:
        return {"retained_bytes": state.retained, "lag_bytes": state.lag}
