"""The commands that only read: `list`, `status`, `history`, `sidecars`."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from pgtrickle.commands import status as command
from pgtrickle.interfaces.cli import screens
from pgtrickle.interfaces.cli.options import Dsn, Json, Name, OneOrAll
from pgtrickle.interfaces.cli.printing import output, print_json, warn

Limit = Annotated[int, Option("--limit", "-n", min=1, help="How many, counted from the newest.")]


def list_stream_tables(dsn: Dsn = "", json: Json = False) -> None:
    """List the stream tables: what was asked for."""
    tables = command.table_statuses(dsn)
    if json:
        print_json(tables)
        return
    output().print(screens.definitions(tables))


def status(name: OneOrAll = None, dsn: Dsn = "", json: Json = False) -> None:
    """Show how stream tables fare: freshness, mode and why, last refresh, last error."""
    if name is None:
        tables = command.table_statuses(dsn)
        if json:
            print_json(tables)
            return
        output().print(screens.statuses(tables))
        return
    table = command.table_status(dsn, name)
    if json:
        print_json(table)
        return
    output().print(screens.status(table))


def history(name: Name, limit: Limit = 20, dsn: Dsn = "", json: Json = False) -> None:
    """Show the latest refreshes of a stream table: what they did, how long it took, and why."""
    refreshes = command.history(dsn, name, limit)
    _warn_if_copy(dsn)
    if json:
        print_json(refreshes)
        return
    output().print(screens.history(refreshes))


def sidecars(dsn: Dsn = "", json: Json = False) -> None:
    """Show who serves this database: workers, what waits for them, how long a look takes."""
    serving = command.sidecars(dsn)
    _warn_if_copy(dsn)
    if json:
        print_json(serving)
        return
    output().print(screens.sidecars(serving))


def _warn_if_copy(dsn: str) -> None:
    if command.is_copy(dsn):
        warn("This database is a copy, and what you see was recorded in the original: run pgtrickle repair.")
