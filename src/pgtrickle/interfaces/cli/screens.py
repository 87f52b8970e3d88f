"""Tables for the terminal: definitions, statuses, history, sidecars."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pgtrickle.commands.list_databases import DatabaseTables
from pgtrickle.commands.status import NO_SIDECAR, PastRefresh, Sidecar, StreamTableStatus
from pgtrickle.interfaces.cli import formatting
from pgtrickle.interfaces.cli.fitting_table import FittingTable
from pgtrickle.model.durations import duration_text
from pgtrickle.model.hints import Interface, render
from pgtrickle.model.stream_table import Status


def definitions(tables: Sequence[StreamTableStatus]) -> RenderableType:
    """The definitions of all stream tables."""
    if not tables:
        return Text('No stream tables yet. Create one: pgtrickle create NAME --query "select …"')
    screen = FittingTable("stream table", "status", "schedule", "mode", "reads", "owner", spare=("owner",))
    for table in tables:
        screen.add_row(
            Text(str(table.name)),
            formatting.status(table.status),
            Text(formatting.schedule(table)),
            Text(formatting.mode(table)),
            Text(", ".join(table.sources)),
            Text(table.owner),
        )
    return Group(screen, *_waits(tables))


def databases(found: Sequence[DatabaseTables]) -> RenderableType:
    """The stream tables of several databases, followed by the databases that could not be asked."""
    if not found:
        return Text("No database here has pgtrickle. Install it: pgtrickle install")
    screen = FittingTable("database", "stream table", "status", "schedule", "mode", "owner")
    for database in found:
        for table in database.tables:
            screen.add_row(
                Text(database.database),
                Text(str(table.name)),
                formatting.status(table.status),
                Text(formatting.schedule(table)),
                Text(formatting.mode(table)),
                Text(table.owner),
            )
        if not database.tables:
            nothing = "cannot be listed" if database.error else "none"
            screen.add_row(Text(database.database), Text(nothing, style="dim"), "", "", "", "")
    errors = [Text(f"{one.database}: {one.error}", style="red") for one in found if one.error]
    return Group(screen, *errors)


def statuses(tables: Sequence[StreamTableStatus]) -> RenderableType:
    """The status of all stream tables, followed by the errors of those that fail."""
    if not tables:
        return definitions(tables)
    headers = ("stream table", "status", "data as of", "pending", "schedule", "mode", "last refresh")
    screen = FittingTable(*headers, right=("data as of", "pending"), spare=("last refresh", "pending"))
    for table in tables:
        screen.add_row(
            Text(str(table.name)),
            formatting.status(table.status),
            Text(_freshness(table)),
            Text(formatting.count(table.pending_changes)),
            Text(formatting.schedule(table)),
            Text(formatting.mode(table)),
            Text(_last_refresh(table)),
        )
    notes = [*_waits(tables), *(note for table in tables for note in _notes(table))]
    return Group(screen, *notes)


def status(table: StreamTableStatus) -> RenderableType:
    """Everything about one stream table."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    rows: list[tuple[str, str | Text]] = [
        ("stream table", Text(str(table.name), style="bold")),
        ("status", formatting.status(table.status)),
        ("data as of", _freshness(table) + _at(table)),
        ("pending", _pending(table)),
        ("schedule", formatting.schedule(table)),
        ("mode", formatting.mode(table)),
    ]
    if table.downgrade_reason:
        rows.append(("why FULL", table.downgrade_reason))
    if table.refresh_timeout is not None:
        limit = duration_text(table.refresh_timeout) if table.refresh_timeout else "none"
        rows.append(("refresh timeout", Text(limit)))
    if table.waits:
        rows.append(("waiting", Text(table.waits, style="yellow")))
    rows.append(("last refresh", _last_refresh(table)))
    if table.repairs:
        rows.append(("repairs", Text(_repairs(table), style="yellow")))
    if table.last_error:
        rows.append(("last error", Text(_one_line(table.last_error), style="red")))
        rows.append(
            (
                "failures",
                _failures(table),
            )
        )
    rows += [("reads", ", ".join(table.sources)), ("owner", table.owner), ("query", table.query.strip())]
    for label, value in rows:
        grid.add_row(label, value if isinstance(value, Text) else Text(value))
    return grid


def history(name: str, refreshes: Sequence[PastRefresh]) -> RenderableType:
    """The refreshes of a stream table, newest first."""
    if not refreshes:
        return Text(
            "Not refreshed yet. `pgtrickle run` refreshes it on its schedule;"
            f" `pgtrickle refresh {shlex.quote(name)}` refreshes it now."
        )
    numbers = ("inserted", "deleted", "took", "read", "compute", "apply")
    spare = ("read", "compute", "apply", "by")
    screen = FittingTable("started", "action", *numbers, "why", "by", right=numbers, spare=spare)
    for past in refreshes:
        screen.add_row(
            formatting.moment(past.started_at),
            Text(past.action.value if not past.error else f"{past.action.value} failed"),
            formatting.count(past.rows_inserted),
            formatting.count(past.rows_deleted),
            formatting.milliseconds(past.milliseconds),
            formatting.milliseconds(past.read_ms),
            formatting.milliseconds(past.compute_ms),
            formatting.milliseconds(past.apply_ms),
            Text(_one_line(past.error), style="red") if past.error else Text(past.reason or ""),
            Text(past.initiated_by),
        )
    return screen


def sidecars(serving: Sequence[Sidecar]) -> RenderableType:
    """The sidecars of a database."""
    if not serving:
        return Text("No sidecar serves this database. Start one with `pgtrickle run`.")
    numbers = ("busy workers", "queued", "behind", "poll", "slowest poll", "refreshes", "failures")
    spare = ("in place", "poll", "slowest poll", "queued")
    screen = FittingTable("sidecar", "since", *numbers, "in place", right=numbers, spare=spare)
    for sidecar in serving:
        place = Text(f"{sidecar.host}, process {sidecar.process}")
        if not sidecar.is_alive:
            place.append(f", silent since {formatting.moment(sidecar.seen_at)}", style="red")
        screen.add_row(
            place,
            formatting.moment(sidecar.started_at),
            f"{sidecar.busy} of {sidecar.workers}",
            formatting.count(sidecar.queued),
            formatting.count(sidecar.behind),
            formatting.milliseconds(sidecar.tick_milliseconds),
            formatting.milliseconds(sidecar.slowest_tick_milliseconds),
            formatting.count(sidecar.refreshes),
            formatting.count(sidecar.failures),
            _in_place(sidecar).partition(",")[0],
        )
    reasons = [
        Text(
            f"{sidecar.host}, process {sidecar.process}:"
            f" small changes computed in place: {_in_place(sidecar)}",
            "yellow",
        )
        for sidecar in serving
        if _in_place(sidecar).startswith("no,")
    ]
    return Group(screen, *reasons)


def _in_place(sidecar: Sidecar) -> str:
    """Whether Spark computes small changes in the driver: yes, no with the reason, or not known yet."""
    return str(sidecar.vitals.get("in_place") or "not known yet")


def _freshness(table: StreamTableStatus) -> str:
    if not table.is_populated or table.staleness_seconds is None:
        return "not loaded"
    if table.staleness_seconds == 0:
        return "now"
    return f"{formatting.age(table.staleness_seconds)} ago"


def _failures(table: StreamTableStatus) -> str:
    return f"{table.consecutive_errors} in a row; next attempt: {formatting.moment(table.retry_at)}"


def _pending(table: StreamTableStatus) -> str:
    if table.pending_changes is None:
        return "–"
    return formatting.counted(table.pending_changes, "captured change row")


def _at(table: StreamTableStatus) -> str:
    return f" ({formatting.moment(table.data_timestamp)})" if table.data_timestamp else ""


def _last_refresh(table: StreamTableStatus) -> str:
    if table.last_action is None:
        return "none"
    return f"{table.last_action.value}, {formatting.milliseconds(table.last_milliseconds)}"


def _waits(tables: Sequence[StreamTableStatus]) -> list[RenderableType]:
    """What stream tables wait for, one line per reason."""
    waiting: dict[str, list[str]] = {}
    for table in tables:
        if table.waits:
            waiting.setdefault(table.waits, []).append(str(table.name))
    return [_waiting_line(reason, names) for reason, names in waiting.items()]


def _waiting_line(reason: str, names: Sequence[str]) -> RenderableType:
    if reason.startswith(NO_SIDECAR):
        # it concerns the whole database
        return Text(f"{reason[0].upper()}{reason[1:]}. Start one with `pgtrickle run`.", style="yellow")
    return Text.assemble(
        (", ".join(names) if len(names) <= 3 else f"{len(names)} stream tables", "bold"),
        f" {'is' if len(names) == 1 else 'are'} waiting: ",
        (reason, "yellow"),
    )


def _notes(table: StreamTableStatus) -> list[RenderableType]:
    notes: list[RenderableType] = []
    if table.downgrade_reason:
        notes.append(_note(table, "FULL because", table.downgrade_reason, ""))
    if table.repairs:
        notes.append(_note(table, "repairs:", _repairs(table), "yellow"))
    if table.last_error and table.status is not Status.ACTIVE:
        notes.append(_note(table, "last error:", table.last_error, "red"))
    if table.status is Status.SUSPENDED:
        resume = f"`pgtrickle resume {shlex.quote(str(table.name))}` resumes it"
        notes.append(_note(table, "suspended:", resume, ""))
    return notes


def _repairs(table: StreamTableStatus) -> str:
    when = formatting.moment(table.last_repair_at)
    count = formatting.count(table.repairs)
    return f"{count}, the last at {when}; pgtrickle.repairs('{table.name}') shows the rows"


def _note(table: StreamTableStatus, label: str, text: str, style: str) -> RenderableType:
    return Text.assemble((str(table.name), "bold"), f": {label} ", (_one_line(text), style))


def _one_line(text: str) -> str:
    """A stored error on one line, with its hint in the language of the command line."""
    return render(" ".join(text.split()), Interface.CLI)
