"""The command `repair`."""

from __future__ import annotations

from typing import Annotated

from typer import Argument

from pgtrickle.commands import repair as command
from pgtrickle.interfaces.cli.options import Dsn, Json
from pgtrickle.interfaces.cli.printing import print_json, say

OneName = Annotated[
    str | None,
    Argument(show_default=False, help="The stream table to load anew; without it, whatever is broken."),
]


def repair(name: OneName = None, dsn: Dsn = "", json: Json = False) -> None:
    """Bind a restored or cloned database anew, mend what is broken, or load one stream table anew."""
    done = command.repair(dsn, name)
    if json:
        print_json({"done": done})
        return
    say(done)
