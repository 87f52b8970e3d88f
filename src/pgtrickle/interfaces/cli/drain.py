"""The commands `drain` and `undrain`."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from pgtrickle.commands import drain as command
from pgtrickle.interfaces.cli.options import Dsn, Json
from pgtrickle.interfaces.cli.printing import print_json, say

Timeout = Annotated[
    int,
    Option("--timeout", min=0, max=86400, metavar="SECONDS", help="How long to wait for running refreshes."),
]


def drain(timeout: Timeout = 60, dsn: Dsn = "", json: Json = False) -> None:
    """Start no more refreshes, and wait for the running ones.

    It applies to all sidecars of the database until `pgtrickle undrain`. Use it before a shutdown or an
    upgrade. Changes are still captured.
    """
    command.drain(dsn, timeout)
    if json:
        print_json({"is_drained": True})
        return
    say(["Drained: no refresh is running, and none starts until `pgtrickle undrain`."])


def undrain(dsn: Dsn = "", json: Json = False) -> None:
    """Let refreshes start again after drain."""
    was_drained = command.undrain(dsn)
    if json:
        print_json({"is_drained": False, "was_drained": was_drained})
        return
    say(
        [
            "Refreshes can start again."
            if was_drained
            else "The database was not drained. Nothing was changed."
        ]
    )
