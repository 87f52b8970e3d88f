"""The command `resume`."""

from __future__ import annotations

from pgtrickle.commands import define
from pgtrickle.commands.status import table_status
from pgtrickle.interfaces.cli.options import Dsn, Json, Name
from pgtrickle.interfaces.cli.printing import print_json, say
from pgtrickle.model.stream_table import Status


def resume(name: Name, dsn: Dsn = "", json: Json = False) -> None:
    """Resume a suspended or failed stream table."""
    before = table_status(dsn, name).status
    define.resume(dsn, name)
    resumed = table_status(dsn, name)
    if json:
        print_json(resumed)
        return
    if before is Status.ACTIVE:
        say([f"Stream table {resumed.name} was ACTIVE already; its error count is reset."])
        return
    say([f"Resumed stream table {resumed.name}. It is {resumed.status.value} now."])
