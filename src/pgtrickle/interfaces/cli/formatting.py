"""Times, counts and states in as few words as people need."""

from __future__ import annotations

from datetime import datetime

from rich.text import Text

from pgtrickle.commands.status import StreamTableStatus
from pgtrickle.model.stream_table import RefreshMode, Status
from pgtrickle.model.tier import Tier

_COLOURS = {
    Status.ACTIVE: "green",
    Status.INITIALIZING: "yellow",
    Status.SUSPENDED: "magenta",
    Status.ERROR: "bold red",
}


def status(value: Status) -> Text:
    """The status, in the colour of how bad it is."""
    return Text(value.value, style=_COLOURS[value])


def age(seconds: float | None) -> str:
    """How long ago: `0.4 s`, `12 s`, `3 min`, `5 h`, `2 d`."""
    if seconds is None:
        return "–"
    seconds = max(seconds, 0)
    if seconds < 10:
        return f"{seconds:.1f} s"
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def milliseconds(value: float | None) -> str:
    """`0.8 ms`, `142 ms`, `12.4 s`."""
    if value is None:
        return "–"
    if value >= 10_000:
        return f"{value / 1000:.1f} s"
    return f"{value:.0f} ms" if value >= 10 else f"{value:.1f} ms"


def count(value: int | None) -> str:
    """A number with its thousands apart."""
    return "–" if value is None else f"{value:,}"


def moment(value: datetime | None) -> str:
    """A time in this machine's zone."""
    return "–" if value is None else value.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def schedule(table: StreamTableStatus) -> str:
    """When it is refreshed; a tier other than hot changes that: `5s (warm)`."""
    return table.schedule if table.tier is Tier.HOT else f"{table.schedule} ({table.tier.value})"


def mode(table: StreamTableStatus) -> str:
    """What was asked for, and what it became: `AUTO → FULL`."""
    asked, effective = table.refresh_mode, table.effective_refresh_mode
    if effective is None:
        return asked.value if asked is not RefreshMode.AUTO else "AUTO → not yet known"
    return asked.value if asked is effective else f"{asked.value} → {effective.value}"
