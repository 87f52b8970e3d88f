"""Parts of live screens, of `pgtrickle top` and of the demonstration."""

from __future__ import annotations

from collections.abc import Collection

from rich import box
from rich.table import Table
from rich.text import Text

from pgtrickle.interfaces.cli import formatting
from pgtrickle.model.table_state import StreamTableState

_STYLES = {
    StreamTableState.FAILING: "bold red",
    StreamTableState.SUSPENDED: "magenta",
    StreamTableState.LATE: "yellow",
    StreamTableState.WAITING: "yellow",
    StreamTableState.INITIALIZING: "cyan",
    StreamTableState.FRESH: "green",
}


def grid(*headers: str, right: Collection[str] = ()) -> Table:
    """An empty table with dim headers and without frames; nothing in it is wrapped."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim")
    for header in headers:
        table.add_column(header, no_wrap=True, justify="right" if header in right else "left")
    return table


def state(value: StreamTableState) -> Text:
    """The state in its colour."""
    return Text(value.value, style=_STYLES[value])


def behind(staleness_seconds: float | None, *, is_late: bool = False) -> Text:
    """How far a stream table is behind its sources."""
    if staleness_seconds is None:
        return Text("not loaded", style="yellow")
    if staleness_seconds == 0:
        return Text("now", style="green")
    return Text(formatting.age(staleness_seconds), style="bold yellow" if is_late else "")


def rate(per_second: float) -> str:
    """Refreshes per second; nothing if there were none."""
    if per_second == 0:
        return "–"
    return f"{per_second:.1f}" if per_second < 100 else f"{per_second:,.0f}"
