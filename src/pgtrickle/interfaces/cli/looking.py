"""Commands that only look: list, status, history, sidecars."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from pgtrickle.commands import look
from pgtrickle.interfaces.cli import screens
from pgtrickle.interfaces.cli.options import Dsn, Json, Name
from pgtrickle.interfaces.cli.printing import output, print_json, warn

OneOrAll = Annotated[str | None, Argument(show_default=False, help="One stream table; without it, all.")]
Limit = Annotated[int, Option("--limit", "-n", min=1, help="How many, counted from the newest.")]


def list_all(dsn: Dsn = "", json: Json = False) -> None:
    """List the stream tables: what was asked for."""
    tables = look.standings(dsn)
    if json:
        print_json(tables)
        return
    output().print(screens.definitions(tables))


def status(name: OneOrAll = None, dsn: Dsn = "", json: Json = False) -> None:
    """Show how stream tables fare: freshness, mode and why, last refresh, last error."""
    if name is None:
        tables = look.standings(dsn)
        if json:
            print_json(tables)
            return
        output().print(screens.standings(tables))
        return
    table = look.standing(dsn, name)
    if json:
        print_json(table)
        return
    output().print(screens.standing(table))


def history(name: Name, limit: Limit = 20, dsn: Dsn = "", json: Json = False) -> None:
    """Show the latest refreshes of a stream table: what they did, how long it took, and why."""
    refreshes = look.history(dsn, name, limit)
    _warn_of_copy(dsn)
    if json:
        print_json(refreshes)
        return
    output().print(screens.history(refreshes))


def sidecars(dsn: Dsn = "", json: Json = False) -> None:
    """Show who serves this database: workers, what waits for them, how long a look takes."""
    serving = look.sidecars(dsn)
    _warn_of_copy(dsn)
    if json:
        print_json(serving)
        return
    output().print(screens.sidecars(serving))


def _warn_of_copy(dsn: str) -> None:
    if look.is_copy(dsn):
        warn("This database is a copy, and what you see was recorded in the original: run pgtrickle repair.")
