"""The commands `install` and `uninstall`."""

from __future__ import annotations

import sys
from typing import Annotated

from typer import BadParameter, Option, confirm

from pgtrickle.commands import install as command
from pgtrickle.commands.status import table_statuses
from pgtrickle.interfaces.cli.options import Dsn, Json
from pgtrickle.interfaces.cli.printing import print_json, say

Tables = Annotated[
    bool, Option("--drop-tables", help="Drop the stream tables too, with all that depends on them.")
]
Yes = Annotated[bool, Option("--yes", "-y", help="Do not ask.")]


def install(dsn: Dsn = "", json: Json = False) -> None:
    """Put pgtrickle into a database, or upgrade it there. Again is harmless."""
    done = command.install(dsn)
    if json:
        print_json({"done": done})
        return
    say(done)
    if not table_statuses(dsn):
        say(['Next: pgtrickle create NAME --query "select …", and pgtrickle run.'])


def uninstall(drop_tables: Tables = False, yes: Yes = False, dsn: Dsn = "", json: Json = False) -> None:
    """Take pgtrickle out of a database; stream tables stay as ordinary tables."""
    if drop_tables and not yes:
        if not sys.stdin.isatty():
            raise BadParameter("--drop-tables asks before it drops; where nobody can answer, add --yes")
        confirm(_warning(dsn), abort=True, err=True)
    done = command.uninstall(dsn, drop_tables=drop_tables)
    if json:
        print_json({"done": done})
        return
    say(done)


def _warning(dsn: str) -> str:
    names = [str(table.name) for table in table_statuses(dsn)]
    if not names:
        return "This removes pgtrickle from the database. Go on?"
    return f"This drops {', '.join(names)} with everything that depends on them. Go on?"
