"""One stream table as the API shows it, kept up to date by events and by reads of the catalog."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from pgtrickle.commands.overview import TableOverview
from pgtrickle.commands.status import PastRefresh
from pgtrickle.model.errors import BadSchedule
from pgtrickle.model.stream_table import Action, RefreshOutcome, Status
from pgtrickle.model.table_state import StreamTableState, allowed_staleness, state_of
from pgtrickle.model.tier import Tier
from pgtrickle.scheduler.policy.schedule import Calculated, Every, parse_schedule

RECENT: Final = 50
STATES: Final = tuple(state.value for state in StreamTableState)
"""The states of a stream table, those that need attention first."""
FAILED_LETTER: Final = "X"
_MOVING: Final = frozenset({"staleness_seconds", "data_timestamp", "version", "recent"})
"""What changes with the clock, so that a change of it alone is no news."""


@dataclass(slots=True)
class TableRow:
    """A stream table: `values` are those of the API.

    One thread changes it while others read: `values` is replaced as a whole and never changed.
    """

    values: Mapping[str, Any]
    _texts: dict[bool, tuple[Mapping[str, Any], str]] = field(default_factory=dict)
    """JSON with the values that it was made from."""

    @property
    def name(self) -> str:
        """Its name as SQL."""
        return str(self.values["name"])

    @property
    def state(self) -> str:
        """One of `STATES`."""
        return str(self.values["state"])

    def take(self, values: Mapping[str, Any], version: int) -> bool:
        """Take the values of the catalog; return whether they are news to somebody who has the old ones."""
        old = self.values
        is_news = any(
            values[key] != old[key] for key in values if key not in _MOVING and key != "last"
        ) or _known_part(values["last"]) != _known_part(old["last"])
        self.values = {**old, **values, "version": version if is_news else old["version"]}
        return is_news

    def note_refresh(self, outcome: RefreshOutcome, at: datetime, version: int) -> None:
        """Take in a refresh that this process has just committed."""
        changes: dict[str, Any] = {
            "status": Status.ACTIVE.value,
            "is_populated": True,
            "consecutive_errors": 0,
            "error": None,
            "failing_since": None,
            "retry_at": None,
            "waits": None,
            "staleness_seconds": 0.0,
            "pending_changes": 0,
            "data_timestamp": time_text(at),
        }
        if outcome.action is not Action.NO_DATA:
            changes["last"] = {
                "refresh_id": None,
                "at": time_text(at),
                "action": outcome.action.value,
                "rows_inserted": outcome.rows_inserted,
                "rows_deleted": outcome.rows_deleted,
                "ms": outcome.milliseconds,
            }
            changes["recent"] = self._with_recent(outcome.milliseconds, outcome.action, is_failed=False)
        self._change(changes, version)

    def note_failure(self, error: str | None, at: datetime, version: int) -> None:
        """Take in a failure of a refresh of this process. What follows from it is read from the catalog."""
        self._change(
            {
                "consecutive_errors": self.values["consecutive_errors"] + 1,
                "error": error,
                "failing_since": self.values["failing_since"] or time_text(at),
                "recent": self._with_recent(0.0, None, is_failed=True),
            },
            version,
        )

    def note_past(self, past: PastRefresh, version: int) -> None:
        """Take in a refresh that another process has committed."""
        is_failed = past.status == "FAILED"
        if is_failed or past.action is not Action.NO_DATA:
            recent = self._with_recent(past.milliseconds, past.action, is_failed=is_failed)
            self.values = {**self.values, "recent": recent, "version": version}

    def text(self, *, with_errors: bool) -> str:
        """The values as JSON. Error texts may quote data, so not everybody gets them."""
        values = self.values
        key = with_errors or values["error"] is None
        found = self._texts.get(key)
        if found is None or found[0] is not values:
            found = (values, json_text(values if key else {**values, "error": None}))
            self._texts[key] = found
        return found[1]

    def _with_recent(self, milliseconds: float, action: Action | None, *, is_failed: bool) -> list[Any]:
        return [*self.values["recent"], _mark(milliseconds, action, is_failed=is_failed)][-RECENT:]

    def _change(self, changes: dict[str, Any], version: int) -> None:
        values = {**self.values, **changes, "version": version}
        self.values = {**values, "state": _state(values)}


def _mark(milliseconds: float, action: Action | None, *, is_failed: bool) -> list[Any]:
    """A refresh in a sparkline: how long it took, and the first letter of what it did."""
    return [round(milliseconds, 1), FAILED_LETTER if is_failed or action is None else action.value[0]]


def table_values(table: TableOverview) -> dict[str, Any]:
    """The values of a stream table, as of its overview."""
    status, last = table.status, table.last
    values: dict[str, Any] = {
        "id": table.id,
        "name": str(status.name),
        "schema": status.name.schema,
        "table": status.name.name,
        "owner": status.owner,
        "state": "",
        "status": status.status.value,
        "schedule": status.schedule,
        "schedule_seconds": schedule_seconds(status.schedule),
        "tier": status.tier.value,
        "refresh_mode": status.refresh_mode.value,
        "effective_mode": status.effective_refresh_mode.value if status.effective_refresh_mode else None,
        "reason": status.downgrade_reason,
        "staleness_seconds": status.staleness_seconds,
        "data_timestamp": time_text(status.data_timestamp),
        "pending_changes": status.pending_changes,
        "is_populated": status.is_populated,
        "waits": status.waits,
        "consecutive_errors": status.consecutive_errors,
        "failing_since": time_text(table.failing_since),
        "retry_at": time_text(status.retry_at),
        "error": status.last_error,
        "last": None,
        "sources": list(status.sources),
        "version": 0,
    }
    if last is not None:
        values["last"] = {
            "refresh_id": last.refresh_id,
            "at": time_text(last.at),
            "action": last.action.value,
            "rows_inserted": last.rows_inserted,
            "rows_deleted": last.rows_deleted,
            "ms": last.milliseconds,
        }
    values["state"] = _state(values)
    return values


def _known_part(last: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """A refresh without what its event does not tell."""
    return last and {key: value for key, value in last.items() if key not in ("refresh_id", "at")}


def _state(values: Mapping[str, Any]) -> str:
    return state_of(
        status=Status(values["status"]),
        consecutive_errors=values["consecutive_errors"],
        is_populated=values["is_populated"],
        waits=values["waits"],
        staleness_seconds=values["staleness_seconds"],
        allowed_seconds=allowed_staleness(
            values["schedule"], values["schedule_seconds"], Tier(values["tier"])
        ),
    ).value


@lru_cache(maxsize=1024)
def schedule_seconds(schedule: str) -> float | None:
    """The interval of a schedule; None for cron, manual and calculated ones."""
    try:
        parsed = parse_schedule(schedule)
    except BadSchedule:
        return None
    match parsed:
        case Every(interval):
            return interval.total_seconds()
        case Calculated(interval) if interval is not None:
            return interval.total_seconds()
        case _:
            return None


def time_text(at: datetime | None) -> str | None:
    """A time in ISO 8601, in UTC."""
    return None if at is None else at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def json_text(value: object) -> str:
    """JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
