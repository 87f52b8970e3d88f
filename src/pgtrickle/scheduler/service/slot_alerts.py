"""Watches how much log replication slots hold back: warns, and gives a slot up before the disk is full."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from pgtrickle.capture.wal.slot import SlotState, drop_slot, may_use_slots, slot_state
from pgtrickle.catalog.alerts import alert
from pgtrickle.model.limit_settings import MAX_SLOT_WAL_MB, SLOT_LAG_WARNING_THRESHOLD_MB
from pgtrickle.postgres.connection import Connection

MEGABYTE: Final = 1 << 20
PAUSE: Final = "1 hour"
"""How long sources stay with triggers after a slot was given up."""


@dataclass(frozen=True, slots=True)
class SlotLimits:
    """From how much log on to warn, and to give a slot up. 0 megabytes is no limit."""

    warning_mb: int = SLOT_LAG_WARNING_THRESHOLD_MB.default
    most_mb: int = MAX_SLOT_WAL_MB.default


@dataclass(slots=True)
class SlotEpisode:
    """Sends `slot_lag_warning` once when an episode begins, and `slot_lag_resolved` when it ends."""

    limits: SlotLimits = field(default_factory=SlotLimits)
    _is_warned: bool = False

    def is_notable(self, state: SlotState) -> bool:
        """Whether there is anything to tell."""
        return self._is_warned or self._is_late(state) or self._is_too_much(state)

    def check(self, connection: Connection, state: SlotState, **about: str) -> bool:
        """Tell what has changed; returns whether the slot has to be given up."""
        facts = {"retained_bytes": state.retained, "lag_bytes": state.lag, **about}
        if self._is_too_much(state):
            alert(connection, "slot_given_up", **facts, limit_mb=self.limits.most_mb)
            self._is_warned = False
            return True
        is_late = self._is_late(state)
        if is_late != self._is_warned:
            event = "slot_lag_warning" if is_late else "slot_lag_resolved"
            alert(connection, event, **facts, limit_mb=self.limits.warning_mb)
        self._is_warned = is_late
        return False

    def _is_late(self, state: SlotState) -> bool:
        return bool(self.limits.warning_mb) and state.retained > self.limits.warning_mb * MEGABYTE

    def _is_too_much(self, state: SlotState) -> bool:
        return bool(self.limits.most_mb) and state.retained > self.limits.most_mb * MEGABYTE


@dataclass(slots=True)
class SlotAlerts:
    """Watches the slot of this database."""

    warning_mb: int = SLOT_LAG_WARNING_THRESHOLD_MB.default
    most_mb: int = MAX_SLOT_WAL_MB.default
    _episode: SlotEpisode = field(default_factory=SlotEpisode)

    def check(self, connection: Connection) -> None:
        """Warn if the slot holds back much log; give it up if that is too much."""
        state = slot_state(connection)
        # without the right to drop it, an administrator has to
        most_mb = self.most_mb if state and may_use_slots(connection) else 0
        self._episode.limits = SlotLimits(self.warning_mb, most_mb)
        if state is not None and self._episode.is_notable(state):
            self._check(connection, state)

    def _check(self, connection: Connection, state: SlotState) -> None:
        with connection.transaction():
            is_given_up = self._episode.check(connection, state)
            if is_given_up:
                connection.execute(
                    "update pgtrickle.pgt_sources set wal_retry_at = clock_timestamp() + %s::interval"
                    " where capture = 'wal'",
                    (PAUSE,),
                )
        if is_given_up:
            # a full disk of the server is worse than a full refresh
            drop_slot(connection)
