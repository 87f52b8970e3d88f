"""The commands `gate` and `ungate`."""

from __future__ import annotations

from typing import Annotated

from typer import Argument

from pgtrickle.commands import gate as command
from pgtrickle.interfaces.cli.options import Dsn, Json
from pgtrickle.interfaces.cli.printing import print_json, say

Source = Annotated[
    str, Argument(show_default=False, help="The table that is read, written as in SQL: orders, shop.orders.")
]


def gate(source: Source, dsn: Dsn = "", json: Json = False) -> None:
    """Let all that depends on a source wait, while it is being loaded; its changes are kept."""
    waiting = command.gate(dsn, source)
    if json:
        print_json({"source": source, "is_gated": True, "waiting": waiting})
        return
    say([f"Gated {source}. Until pgtrickle ungate {source}, these wait: {', '.join(waiting)}."])


def ungate(source: Source, dsn: Dsn = "", json: Json = False) -> None:
    """Let all that depends on a source go on."""
    command.ungate(dsn, source)
    if json:
        print_json({"source": source, "is_gated": False})
        return
    say([f"Opened the gate before {source}."])
