"""The log of a sidecar: one line for each event, with date, time zone and level; JSON for programs."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from rich.text import Text

from pgtrickle.interfaces.cli import formatting
from pgtrickle.interfaces.cli.printing import errors, output, print_error_json, print_json_line
from pgtrickle.interfaces.logged_events import (
    OutageFilter,
    event_values,
    level_of,
    logged_error,
    subject_of,
)
from pgtrickle.model.hints import Interface
from pgtrickle.model.settings import LogFormat, LogLevel

if TYPE_CHECKING:
    from pgtrickle.commands.run import RefreshEvent

_STYLES: Final = {
    LogLevel.DEBUG: "dim",
    LogLevel.INFO: "",
    LogLevel.WARNING: "yellow",
    LogLevel.ERROR: "red",
}


@dataclass(slots=True)
class SidecarLog:
    """Prints events to standard output, and what the sidecar says of itself to standard error."""

    level: LogLevel = LogLevel.INFO
    format: LogFormat = LogFormat.TEXT
    _outages: OutageFilter = field(default_factory=OutageFilter)

    def __call__(self, event: RefreshEvent) -> None:
        """Print an event, unless it matters too little."""
        if not self._outages.is_news(event) or level_of(event).number < self.level.number:
            return
        if self.format is LogFormat.JSON:
            print_json_line(event_values(event, Interface.CLI))
        else:
            output().print(_line(event), soft_wrap=True)

    def announce(self, text: str, level: LogLevel = LogLevel.INFO) -> None:
        """Print a line about the sidecar itself."""
        if level.number < self.level.number:
            return
        now = datetime.now(UTC)
        if self.format is LogFormat.JSON:
            print_error_json({"at": now, "level": level.name, "message": text})
        else:
            errors().print(Text.assemble(_head(now, level), text), soft_wrap=True)


def _line(event: RefreshEvent) -> Text:
    """Time, level and table, then action, rows, duration and reason, or what happened."""
    text = Text.assemble(_head(event.at, level_of(event)), (f"{subject_of(event):<30}  ", "bold"))
    if event.error is not None:
        text.append(f"error {logged_error(event.error, Interface.CLI)}", style="red")
    elif event.outcome is not None:
        outcome = event.outcome
        text.append(f"{outcome.action.value:<12}  ")
        text.append(f"+{formatting.count(outcome.rows_inserted):<8}", style="green")
        text.append(f"−{formatting.count(outcome.rows_deleted):<8}", style="magenta")
        text.append(f"{formatting.milliseconds(outcome.milliseconds):>8}  ")
        text.append(outcome.reason, style="dim")
    else:
        text.append(event.note or "", style="yellow" if event.is_warning else "green")
    return text


def _head(at: datetime, level: LogLevel) -> Text:
    """`2026-01-31 12:00:00.000+01:00 INFO`, as wide for every level."""
    time = at.astimezone().isoformat(sep=" ", timespec="milliseconds")
    return Text.assemble((f"{time} ", "dim"), (f"{level.name:<7}  ", _STYLES[level]))
