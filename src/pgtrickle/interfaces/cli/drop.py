"""The command `drop`."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from pgtrickle.commands import define
from pgtrickle.commands.status import table_statuses
from pgtrickle.interfaces.cli.options import Dsn, Json, Name
from pgtrickle.interfaces.cli.printing import print_json, say

Cascade = Annotated[bool, Option("--cascade", help="Drop what reads it as well.")]


def drop(name: Name, cascade: Cascade = False, dsn: Dsn = "", json: Json = False) -> None:
    """Drop a stream table."""
    before = [table.name for table in table_statuses(dsn)]
    define.drop(dsn, name, cascade=cascade)
    after = {table.name for table in table_statuses(dsn)}
    dropped = [table for table in before if table not in after]
    if json:
        print_json({"dropped": dropped})
        return
    say(f"Dropped stream table {table}." for table in dropped)
