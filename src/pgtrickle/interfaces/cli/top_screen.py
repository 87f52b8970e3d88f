"""The screen of `pgtrickle top`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pgtrickle.commands.top import Activity, TableActivity
from pgtrickle.interfaces.cli import formatting
from pgtrickle.interfaces.cli.live_parts import behind, grid, rate, state
from pgtrickle.interfaces.cli.poller import Polled
from pgtrickle.interfaces.cli.top_view import HELP, TopView
from pgtrickle.model.hints import Interface, render
from pgtrickle.model.table_state import StreamTableState

AROUND = 7
"""Lines of the screen that are not stream tables: head, headers, problem, help."""
_WIDE = 110
"""From this width on, the mode and the last action are shown too."""
_COLUMNS = ("state", "behind / schedule", "refr./s", "last", "took")
_MORE = ("mode", "did")


def whole(activity: Activity, width: int) -> RenderableType:
    """All stream tables at once, below the head, for output that does not move."""
    if not activity.tables:
        return Text("No stream tables.", style="dim")
    parts: list[RenderableType] = [_tables(activity.tables, activity.at, width, None)]
    parts += [_problem(table) for table in activity.tables if table.problem and _is_own(activity, table)]
    return Group(*parts)


def page(polled: Polled[Activity], arranged: Activity, view: TopView, width: int, height: int) -> Group:
    """As many stream tables as fit, including the selected one, and the problem it has."""
    tables = arranged.tables
    rows = view.shown_rows(len(tables), height - AROUND)
    shown = tables[rows.start : rows.stop]
    selected = min(view.selected, max(len(tables) - 1, 0))
    parts: list[RenderableType] = [head(polled.value or arranged, polled)]
    if tables:
        parts.append(_tables(shown, arranged.at, width, selected - rows.start))
        parts.append(_one_line(_problem(tables[selected]) if tables[selected].problem else Text("")))
    else:
        parts.append(Text("No stream table matches." if view.pattern else "No stream tables yet.", "dim"))
    parts.append(_one_line(_foot(view, rows, len(tables))))
    return Group(*parts)


def head(activity: Activity, polled: Polled[Activity] | None = None) -> Table:
    """Two lines: the database and its states; the sidecars and their work. Or that the database is away."""
    lines = Table.grid()
    lines.add_column(no_wrap=True, overflow="ellipsis")
    counts = [(one, activity.count(one)) for one in StreamTableState]
    first = Text.assemble(
        (activity.database, "bold"),
        f"  {activity.at.astimezone():%H:%M:%S}  ",
        formatting.counted(len(activity.tables), "stream table"),
    )
    for one, count in counts:
        if count:
            first.append("  ").append(f"{count:,} ").append(state(one))
    lines.add_row(first)
    if polled is not None and polled.trouble is not None:
        away = formatting.age(polled.away_seconds)
        lines.add_row(Text(f"away for {away}, trying again: {polled.trouble}", style="bold red"))
    else:
        lines.add_row(_sidecars(activity))
    return lines


def _sidecars(activity: Activity) -> Text:
    serving = activity.sidecars
    if not serving:
        return Text("no sidecar serves this database: start `pgtrickle run`", style="bold red")
    busy, workers = sum(one.busy for one in serving), sum(one.workers for one in serving)
    slowest = max((one.tick_milliseconds or 0 for one in serving), default=0)
    return Text.assemble(
        formatting.counted(len(serving), "sidecar"),
        f"  {busy} of {workers} workers busy  {sum(one.queued for one in serving):,} queued"
        f"  {max(one.behind or 0 for one in serving):,} behind  poll {formatting.milliseconds(slowest)}  ",
        (f"{rate(activity.refreshes_per_second)} refreshes/s", "bold"),
    )


def _tables(tables: Sequence[TableActivity], at: datetime, width: int, selected: int | None) -> Table:
    is_wide = width >= _WIDE
    headers = ("stream table", *_COLUMNS, *(_MORE if is_wide else ()))
    screen = grid(*headers, right=("behind / schedule", "refr./s", "last", "took"))
    screen.columns[0].overflow = "ellipsis"
    screen.columns[0].ratio = 1
    for index, table in enumerate(tables):
        cells = [
            Text(str(table.name)),
            state(table.state),
            _against_schedule(table),
            Text(rate(table.refreshes_per_second)),
            Text(_ago(table.last_refresh_at, at)),
            Text(formatting.milliseconds(table.last_milliseconds)),
        ]
        if is_wide:
            cells.append(Text(table.effective_refresh_mode.value if table.effective_refresh_mode else "–"))
            cells.append(Text(table.last_action.value if table.last_action else "–"))
        screen.add_row(*cells, style="reverse" if index == selected else "")
    screen.expand = selected is not None
    return screen


def _against_schedule(table: TableActivity) -> Text:
    shown = behind(table.staleness_seconds, is_late=table.state is StreamTableState.LATE)
    return shown.append(f" / {table.schedule}", style="dim")


def _ago(then: datetime | None, now: datetime) -> str:
    return "–" if then is None else formatting.age((now - then).total_seconds())


def _is_own(activity: Activity, table: TableActivity) -> bool:
    """Whether its problem is not one that the head tells for all: that no sidecar runs."""
    is_failing = table.state in (StreamTableState.FAILING, StreamTableState.SUSPENDED)
    return bool(activity.sidecars) or is_failing


def _problem(table: TableActivity) -> Text:
    text = render(" ".join((table.problem or "").split()), Interface.CLI)
    return Text.assemble((str(table.name), "bold"), ": ", (text, "red"))


def _foot(view: TopView, rows: range, count: int) -> Text:
    if view.typing is not None:
        return Text.assemble("filter: ", (view.typing, "bold"), "▏  Enter keeps it, Esc clears it")
    shown = f"{rows.start + 1}–{rows.stop} of {count:,}" if count else ""
    chosen = f"by {view.order.value}" + (f", filter {view.pattern}" if view.pattern else "")
    return Text(f"{shown} {chosen}  {HELP}", style="dim")


def _one_line(text: Text) -> Text:
    text.no_wrap, text.overflow = True, "ellipsis"
    return text
