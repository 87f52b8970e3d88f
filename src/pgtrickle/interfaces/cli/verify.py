"""The command `verify`."""

from __future__ import annotations

import os
from typing import Annotated

from typer import Option

from pgtrickle.interfaces.cli import formatting
from pgtrickle.interfaces.cli.command_engine import check_arguments, open_engine
from pgtrickle.interfaces.cli.options import Dsn, Json, OneOrAll
from pgtrickle.interfaces.cli.printing import print_json, say
from pgtrickle.model.settings import read_settings

VerifyTimeout = Annotated[
    float,
    Option(
        "--timeout",
        min=0,
        max=315576000,
        help="Seconds that the comparison of one stream table may take; then it is cancelled. 0 is any.",
    ),
]


def verify(name: OneOrAll = None, dsn: Dsn = "", timeout: VerifyTimeout = 3600.0, json: Json = False) -> None:
    """Compare stream tables with PostgreSQL's own answer at the same moment."""
    check_arguments(dsn, name)
    settings = read_settings(os.environ, dsn=dsn)
    with open_engine(settings, f"Comparing {name or 'every stream table'}") as engine:
        from pgtrickle.commands import verify as command

        verified = command.verify(engine, name, timeout or None)
    if json:
        print_json(verified)
        return
    for table in verified:
        took = formatting.milliseconds(table.milliseconds)
        say([f"{table.name} equals its query: {formatting.count(table.rows)} rows ({took})."])
    if not verified:
        say(["There is nothing to compare: no stream table has been loaded."])
