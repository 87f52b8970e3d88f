"""The commands `install` and `uninstall`."""

from __future__ import annotations

import sys
from typing import Annotated

from typer import BadParameter, Option, confirm

from pgtrickle.commands import install as command
from pgtrickle.commands.grants import grants
from pgtrickle.commands.status import table_statuses
from pgtrickle.interfaces.cli import formatting
from pgtrickle.interfaces.cli.options import Dsn, Json
from pgtrickle.interfaces.cli.printing import print_json, say
from pgtrickle.model.errors import NotInstalled

Tables = Annotated[
    bool, Option("--drop-tables", help="Also drop the stream tables and everything that depends on them.")
]
Yes = Annotated[bool, Option("--yes", "-y", help="Do not ask for confirmation.")]

Export = Annotated[
    str | None,
    Option(
        "--export",
        metavar="FILE",
        show_default=False,
        help="First write the definitions to this new file, as SQL that creates the stream tables again.",
    ),
]
Force = Annotated[bool, Option("--force", help="Remove it even while a sidecar serves the database.")]
PrintGrants = Annotated[
    str | None,
    Option(
        "--print-grants",
        metavar="ROLE",
        show_default=False,
        help="Install nothing; print the SQL that gives this role what it lacks to install pgtrickle, run the"
        " sidecar and, unless you name other owners, create stream tables.",
    ),
]
Owners = Annotated[
    list[str] | None,
    Option(
        "--owner",
        metavar="ROLE",
        show_default=False,
        help="For --print-grants: a role that creates stream tables.",
    ),
]
Sources = Annotated[
    list[str] | None,
    Option(
        "--source",
        metavar="TABLE",
        show_default=False,
        help="For --print-grants: a table that stream tables read. Default: every table.",
    ),
]
Schema = Annotated[
    str, Option("--schema", help="For --print-grants: the schema in which stream tables are created.")
]


def install(
    print_grants: PrintGrants = None,
    owner: Owners = None,
    source: Sources = None,
    schema: Schema = "public",
    dsn: Dsn = "",
    json: Json = False,
) -> None:
    """Install or upgrade pgtrickle in a database. Safe to run again."""
    if print_grants is not None:
        _print_grants(dsn, print_grants, owner or [], source or [], schema, json)
        return
    done = command.install(dsn)
    if json:
        print_json({"done": done})
        return
    say(_without_migrations(done))
    if not table_statuses(dsn):
        say(['Next: `pgtrickle create NAME --query "select …"`, then `pgtrickle run`.'])


def _without_migrations(done: list[str]) -> list[str]:
    """The sentences, with one in place of those about each migration."""
    migrations = [sentence for sentence in done if sentence.startswith("Applied migration ")]
    if len(migrations) < 2:
        return done
    summary = f"Applied {formatting.counted(len(migrations), 'migration')}."
    first = done.index(migrations[0])
    return [*done[:first], summary, *(rest for rest in done[first:] if rest not in migrations)]


def uninstall(
    drop_tables: Tables = False,
    export: Export = None,
    force: Force = False,
    yes: Yes = False,
    dsn: Dsn = "",
    json: Json = False,
) -> None:
    """Remove pgtrickle from a database.

    Definitions and history are removed. Stream tables become ordinary tables, unless you drop them too.
    """
    if not yes:
        if sys.stdin.isatty():
            confirm(_warning(dsn, drop_tables), abort=True, err=True)
        elif drop_tables:
            raise BadParameter(
                "--drop-tables asks for confirmation, and there is no terminal to ask on: add --yes"
            )
    done = command.uninstall(dsn, drop_tables=drop_tables, export=export, force=force)
    if json:
        print_json({"done": done})
        return
    say(done)


def _print_grants(
    dsn: str, role: str, owners: list[str], sources: list[str], schema: str, json: bool
) -> None:
    statements = grants(dsn, role, owners=owners, sources=sources, schema=schema)
    if json:
        print_json({"statements": statements})
        return
    # without the console, which wraps lines
    print("\n".join(f"{statement};" for statement in statements) or "-- no grant is missing")


def _warning(dsn: str, drop_tables: bool) -> str:
    try:
        names = [str(table.name) for table in table_statuses(dsn)]
    except NotInstalled:
        # parts of it may be left
        names = []
    if not names:
        return "This removes pgtrickle from the database. Continue?"
    what = ", ".join(names) if len(names) <= 5 else f"{len(names)} stream tables"
    if drop_tables:
        return f"This drops {what} and everything that depends on them. Continue?"
    return (
        f"This removes the definitions and the history of {what}; --export FILE saves the definitions."
        " The tables stay, and nothing refreshes them any more. Continue?"
    )
