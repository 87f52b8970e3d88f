"""The live screen of the demonstration, and its summary."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pgtrickle.commands.status import StreamTableStatus
from pgtrickle.interfaces.cli import formatting
from pgtrickle.interfaces.cli.live_parts import behind, grid
from pgtrickle.interfaces.demo.observations import Overview, RefreshLog, SampleRows, median, ninety_fifth
from pgtrickle.interfaces.demo.shop import EXAMPLES
from pgtrickle.interfaces.demo.writer import WriteCounts
from pgtrickle.model.stream_table import Action, RefreshMode

_SHOWS = {example.name: example.shows for example in EXAMPLES}


def live(overview: Overview, log: RefreshLog, written: WriteCounts, seconds: float) -> RenderableType:
    """The live screen: what is written, how the stream tables follow, a few of their rows."""
    parts: list[RenderableType] = [_headline(written, log, seconds), "", _tables(overview, log), ""]
    parts += [_reason(table) for table in overview.tables if table.downgrade_reason]
    parts += ["", Columns([_sample(sample) for sample in overview.samples], padding=(0, 3))]
    if log.errors:
        name, error = log.errors[-1]
        parts.append(Text(f"{name}: {error}", style="red"))
    return Group(*parts)


def line(overview: Overview, log: RefreshLog, written: WriteCounts, seconds: float) -> str:
    """The same as one line of text, for output without a terminal."""
    work = log.work()
    ages = [table.staleness_seconds for table in overview.tables if table.staleness_seconds is not None]
    return (
        f"{seconds:4.0f} s  {formatting.count(written.rows)} rows changed"
        f" in {formatting.count(written.transactions)} transactions;"
        f" {len(work)} refreshes, median {formatting.milliseconds(median(work))};"
        f" oldest data {formatting.age(max(ages, default=None))}"
    )


def summary(overview: Overview, log: RefreshLog, verified: Mapping[str, bool]) -> RenderableType:
    """The totals of all refreshes, and whether each stream table equals its query."""
    screen = grid("stream table", "mode", "refreshes", "inserted", "deleted", "median", "95 %", "first load")
    screen.add_column("equals its query")
    for index in range(2, 8):
        screen.columns[index].justify = "right"
    for table in overview.tables:
        work = log.work(table.name)
        is_equal = verified.get(str(table.name))
        screen.add_row(
            Text(str(table.name)),
            formatting.mode(table),
            formatting.count(len(work)),
            formatting.count(sum(outcome.rows_inserted for outcome in work)),
            formatting.count(sum(outcome.rows_deleted for outcome in work)),
            formatting.milliseconds(median(work)),
            formatting.milliseconds(ninety_fifth(work)),
            formatting.milliseconds(_first_load(log, table)),
            Text("yes", style="green") if is_equal else Text("NO", style="bold red"),
        )
    return screen


def _headline(written: WriteCounts, log: RefreshLog, seconds: float) -> Text:
    work = log.work()
    return Text.assemble(
        ("pgtrickle ", "bold"),
        f"{seconds:.0f} s    ",
        (formatting.count(written.rows), "bold"),
        f" rows changed in {formatting.count(written.transactions)} transactions"
        f" ({written.rolled_back} more rolled back)    ",
        (formatting.count(len(work)), "bold"),
        f" refreshes, median {formatting.milliseconds(median(work))}    ",
        ("Ctrl-C stops", "dim"),
    )


def _tables(overview: Overview, log: RefreshLog) -> Table:
    screen = grid("stream table", "shows", "mode", "rows", "behind", "last refresh", "took", "+", "−")
    for index in (3, 4, 6, 7, 8):
        screen.columns[index].justify = "right"
    for table in overview.tables:
        last = log.last(table.name)
        screen.add_row(
            Text(str(table.name), style="bold"),
            _SHOWS.get(str(table.name), ""),
            _mode(table),
            formatting.count(overview.rows.get(str(table.name))),
            behind(table.staleness_seconds),
            Text(last.action.value if last else "–"),
            formatting.milliseconds(last.milliseconds if last else None),
            Text(formatting.count(last.rows_inserted if last else None), style="green"),
            Text(formatting.count(last.rows_deleted if last else None), style="magenta"),
        )
    return screen


def _mode(table: StreamTableStatus) -> str:
    return table.effective_refresh_mode.value if table.effective_refresh_mode else "–"


def _reason(table: StreamTableStatus) -> Text:
    mode = table.effective_refresh_mode or RefreshMode.FULL
    return Text(f"{table.name} is {mode.value}: {table.downgrade_reason}", style="dim")


def _sample(sample: SampleRows) -> Table:
    screen = grid(*sample.columns)
    screen.title, screen.title_justify, screen.title_style = sample.name, "left", "bold"
    for row in sample.rows:
        screen.add_row(*(Text(_cell(value), justify=_side(value)) for value in row))
    return screen


def _cell(value: Any) -> str:
    if isinstance(value, Decimal):
        return f"{value:,.2f}" if value.as_tuple().exponent else f"{value:,}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _side(value: Any) -> Any:
    return "right" if isinstance(value, int | Decimal) else "left"


def _first_load(log: RefreshLog, table: StreamTableStatus) -> float | None:
    loads = [done for done in log.outcomes.get(table.name, ()) if done.action is Action.REINITIALIZE]
    return loads[0].milliseconds if loads else None
