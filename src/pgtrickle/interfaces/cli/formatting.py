"""Formats times, counts and states as short text."""

from __future__ import annotations

from datetime import datetime

from rich.text import Text

from pgtrickle.commands.status import StreamTableStatus
from pgtrickle.model.stream_table import Status
from pgtrickle.model.tier import Tier

_COLOURS = {
    Status.ACTIVE: "green",
    Status.INITIALIZING: "yellow",
    Status.SUSPENDED: "magenta",
    Status.ERROR: "bold red",
}


def status(value: Status) -> Text:
    """The status, coloured by severity."""
    return Text(value.value, style=_COLOURS[value])


def age(seconds: float | None) -> str:
    """An age: `0.4 s`, `12 s`, `3 min`, `5 h`, `2 d`."""
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
    """A duration: `0.8 ms`, `142 ms`, `12.4 s`."""
    if value is None:
        return "–"
    if value >= 10_000:
        return f"{value / 1000:.1f} s"
    return f"{value:.0f} ms" if value >= 10 else f"{value:.1f} ms"


def count(value: int | None) -> str:
    """A number with thousands separators."""
    return "–" if value is None else f"{value:,}"


def counted(number: int, one: str, many: str = "") -> str:
    """A number with its noun: `1 row`, `2 rows`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def moment(value: datetime | None) -> str:
    """A time in the local time zone."""
    return "–" if value is None else value.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def schedule(table: StreamTableStatus) -> str:
    """The schedule, with the tier unless it is hot: `5s (warm)`."""
    return table.schedule if table.tier is Tier.HOT else f"{table.schedule} ({table.tier.value})"


def mode(table: StreamTableStatus) -> str:
    """The requested mode, and the effective one if it is known and differs: `AUTO → FULL`."""
    requested, effective = table.refresh_mode, table.effective_refresh_mode
    if effective is None:
        return requested.value
    return requested.value if requested is effective else f"{requested.value} → {effective.value}"
