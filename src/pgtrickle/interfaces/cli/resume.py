"""The command `resume`."""

from __future__ import annotations

from pgtrickle.commands import define
from pgtrickle.commands.status import table_status
from pgtrickle.interfaces.cli.options import Dsn, Json, Name
from pgtrickle.interfaces.cli.printing import print_json, say


def resume(name: Name, dsn: Dsn = "", json: Json = False) -> None:
    """Let a suspended or failed stream table go on."""
    define.resume(dsn, name)
    resumed = table_status(dsn, name)
    if json:
        print_json(resumed)
        return
    say([f"Stream table {resumed.name} goes on: {resumed.status.value}."])
