"""The command `drop`."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from pgtrickle.commands import define
from pgtrickle.interfaces.cli.options import Dsn, Json, Name
from pgtrickle.interfaces.cli.printing import print_json, say

Cascade = Annotated[bool, Option("--cascade", help="Also drop everything that depends on it.")]


def drop(name: Name, cascade: Cascade = False, dsn: Dsn = "", json: Json = False) -> None:
    """Drop a stream table."""
    dropped = define.drop(dsn, name, cascade=cascade)
    if json:
        print_json({"dropped": dropped})
        return
    say(f"Dropped stream table {table}." for table in dropped)
