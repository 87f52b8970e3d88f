"""The commands `gate` and `ungate`."""

from __future__ import annotations

from typing import Annotated

from typer import Argument

from pgtrickle.commands import gate as command
from pgtrickle.interfaces.cli.completion import sources
from pgtrickle.interfaces.cli.options import Dsn, Json
from pgtrickle.interfaces.cli.printing import print_json, say

Source = Annotated[
    str,
    Argument(
        show_default=False,
        autocompletion=sources,
        metavar="SOURCE",
        help="The source table, written as in SQL: orders, shop.orders.",
    ),
]


def gate(source: Source, dsn: Dsn = "", json: Json = False) -> None:
    """Pause every stream table that depends on a source.

    For example during a bulk load. Changes are still captured.
    """
    waiting = command.gate(dsn, source)
    if json:
        print_json({"source": source, "is_gated": True, "waiting": waiting})
        return
    names = ", ".join(waiting)
    say([f"Gated {source}. Not refreshed until `pgtrickle ungate {source}`: {names}."])


def ungate(source: Source, dsn: Dsn = "", json: Json = False) -> None:
    """Resume the stream tables that gate paused."""
    was_gated = command.ungate(dsn, source)
    if json:
        print_json({"source": source, "is_gated": False, "was_gated": was_gated})
        return
    say([f"Ungated {source}." if was_gated else f"{source} was not gated. Nothing was changed."])
