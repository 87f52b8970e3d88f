"""The commands `drain` and `undrain`."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from pgtrickle.commands import drain as command
from pgtrickle.interfaces.cli.options import Dsn, Json
from pgtrickle.interfaces.cli.printing import print_json, say

Timeout = Annotated[
    int, Option("--timeout", min=0, max=86400, help="How many seconds to wait for refreshes that run.")
]


def drain(timeout: Timeout = 60, dsn: Dsn = "", json: Json = False) -> None:
    """Before a shutdown: let refreshes that run finish, and none start, in any sidecar of the database."""
    command.drain(dsn, timeout)
    if json:
        print_json({"is_drained": True})
        return
    say(["Drained: no refresh runs, and none starts until pgtrickle undrain."])


def undrain(dsn: Dsn = "", json: Json = False) -> None:
    """Let refreshes start again."""
    command.undrain(dsn)
    if json:
        print_json({"is_drained": False})
        return
    say(["Refreshes start again."])
