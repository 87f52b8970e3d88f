"""The command `repair`."""

from __future__ import annotations

from typing import Annotated

from typer import Argument

from pgtrickle.commands import repair as command
from pgtrickle.interfaces.cli.completion import stream_tables
from pgtrickle.interfaces.cli.options import Dsn, Json
from pgtrickle.interfaces.cli.printing import print_json, say

OneName = Annotated[
    str | None,
    Argument(
        show_default=False,
        autocompletion=stream_tables,
        metavar="NAME",
        help="The stream table to load again. Without it, everything that is broken.",
    ),
]


def repair(name: OneName = None, dsn: Dsn = "", json: Json = False) -> None:
    """Repair a restored or cloned database, or one stream table."""
    done = command.repair(dsn, name)
    if json:
        print_json({"done": done})
        return
    say(done)
