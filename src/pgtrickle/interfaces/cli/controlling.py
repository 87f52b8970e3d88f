"""Commands that let refreshes wait: gate, ungate, drain, undrain."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from pgtrickle.commands import control
from pgtrickle.interfaces.cli.options import Dsn, Json
from pgtrickle.interfaces.cli.printing import print_json, say

Source = Annotated[
    str, Argument(show_default=False, help="The table that is read, written as in SQL: orders, shop.orders.")
]
Timeout = Annotated[
    int, Option("--timeout", min=0, max=86400, help="How many seconds to wait for refreshes that run.")
]


def gate(source: Source, dsn: Dsn = "", json: Json = False) -> None:
    """Let all that depends on a source wait, while it is being loaded; its changes are kept."""
    waiting = control.gate(dsn, source)
    if json:
        print_json({"source": source, "is_gated": True, "waiting": waiting})
        return
    say([f"Gated {source}. Until pgtrickle ungate {source}, these wait: {', '.join(waiting)}."])


def ungate(source: Source, dsn: Dsn = "", json: Json = False) -> None:
    """Let all that depends on a source go on."""
    control.ungate(dsn, source)
    if json:
        print_json({"source": source, "is_gated": False})
        return
    say([f"Opened the gate before {source}."])


def drain(timeout: Timeout = 60, dsn: Dsn = "", json: Json = False) -> None:
    """Before a shutdown: let refreshes that run finish, and none start, in any sidecar of the database."""
    control.drain(dsn, timeout)
    if json:
        print_json({"is_drained": True})
        return
    say(["Drained: no refresh runs, and none starts until pgtrickle undrain."])


def undrain(dsn: Dsn = "", json: Json = False) -> None:
    """Let refreshes start again."""
    control.undrain(dsn)
    if json:
        print_json({"is_drained": False})
        return
    say(["Refreshes start again."])
