"""The commands that only read: `list`, `status`, `history`, `sidecars`."""

from __future__ import annotations

import os
from typing import Annotated

from typer import Option

from pgtrickle.commands import status as command
from pgtrickle.interfaces.cli.options import ConfigFile, Dsn, Interval, Json, Name, OneOrAll
from pgtrickle.interfaces.cli.printing import output, print_json, warn
from pgtrickle.model.settings import Settings, read_settings

Limit = Annotated[int, Option("--limit", "-n", min=1, metavar="N", help="How many refreshes to show.")]
All = Annotated[
    bool,
    Option(
        "--all",
        "-a",
        help="List those of all databases: of the configuration file, or of the server with pgtrickle.",
    ),
]


def list_stream_tables(
    dsn: Dsn = "", all_databases: All = False, config: ConfigFile = None, json: Json = False
) -> None:
    """List the stream tables and their definitions."""
    if all_databases:
        _list_all(read_settings(os.environ, dsn=dsn or None, config=config), is_json=json)
        return
    tables = command.table_statuses(dsn)
    if json:
        print_json(tables)
        return
    # imported here and below, because JSON needs no tables on a screen
    from pgtrickle.interfaces.cli import screens

    output().print(screens.definitions(tables))


def _list_all(settings: Settings, *, is_json: bool) -> None:
    from pgtrickle.commands.list_databases import list_databases

    databases = list_databases(settings, os.environ)
    if is_json:
        print_json(databases)
        return
    from pgtrickle.interfaces.cli import screens

    output().print(screens.databases(databases))


Watch = Annotated[bool, Option("--watch", "-w", help="Show it again and again, until Ctrl-C.")]


def status(
    name: OneOrAll = None, watch: Watch = False, interval: Interval = 1.0, dsn: Dsn = "", json: Json = False
) -> None:
    """Show the status of stream tables.

    With a name, everything about that stream table. With --watch and --json, one line of JSON each time.
    """
    if watch:
        _watch_status(name, interval, dsn, json)
    elif json:
        print_json(command.table_statuses(dsn) if name is None else command.table_status(dsn, name))
    else:
        _print_status(name, dsn)


def _print_status(name: str | None, dsn: str) -> None:
    from pgtrickle.interfaces.cli import screens

    if name is None:
        output().print(screens.statuses(command.table_statuses(dsn)))
    else:
        output().print(screens.status(command.table_status(dsn, name)))


def _watch_status(name: str | None, interval: float, dsn: str, json: bool) -> None:
    from pgtrickle.interfaces.cli import screens
    from pgtrickle.interfaces.cli.watch import watch

    if name is None:
        watch(dsn, command.read_table_statuses, screens.statuses, interval, is_json=json)
    else:
        watch(
            dsn,
            lambda opened: command.read_table_status(opened, name),
            screens.status,
            interval,
            is_json=json,
        )


def history(name: Name, limit: Limit = 20, dsn: Dsn = "", json: Json = False) -> None:
    """Show the latest refreshes of a stream table."""
    refreshes = command.history(dsn, name, limit)
    _warn_if_copy(dsn)
    if json:
        print_json(refreshes)
        return
    from pgtrickle.interfaces.cli import screens

    output().print(screens.history(name, refreshes))


def sidecars(dsn: Dsn = "", json: Json = False) -> None:
    """Show the sidecars that serve this database."""
    serving = command.sidecars(dsn)
    _warn_if_copy(dsn)
    if json:
        print_json(serving)
        return
    from pgtrickle.interfaces.cli import screens

    output().print(screens.sidecars(serving))


def _warn_if_copy(dsn: str) -> None:
    if command.is_copy(dsn):
        warn(
            "This database is a copy, and what you see was recorded in the original. Run `pgtrickle repair`."
        )
