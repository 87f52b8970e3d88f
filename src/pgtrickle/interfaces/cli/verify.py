"""The command `verify`."""

from __future__ import annotations

import os
from typing import Annotated

from typer import Option

from pgtrickle.commands.serving import verify_served
from pgtrickle.interfaces.cli import formatting
from pgtrickle.interfaces.cli.command_engine import open_engine
from pgtrickle.interfaces.cli.options import Dsn, Json, OneOrAll
from pgtrickle.interfaces.cli.printing import print_json, say
from pgtrickle.interfaces.cli.progress import ProgressLine
from pgtrickle.model.settings import read_settings

VerifyTimeout = Annotated[
    float,
    Option(
        "--timeout",
        min=0,
        max=315576000,
        metavar="SECONDS",
        help="Cancel the comparison of one stream table after this long. 0 sets no limit.",
    ),
]


def verify(name: OneOrAll = None, dsn: Dsn = "", timeout: VerifyTimeout = 3600.0, json: Json = False) -> None:
    """Compare stream tables with the results of their queries.

    PostgreSQL evaluates each query at the moment that the stream table shows.

    A running sidecar does it, for the stream tables that you own. Without one, this command does it, and
    starts its own Spark if changes are pending.
    """
    settings = read_settings(os.environ, dsn=dsn)
    step = f"Comparing {name or 'every stream table'}"
    with ProgressLine(step):
        verified = verify_served(dsn, name, timeout or None)
    if verified is None:
        with open_engine(settings, step) as engine:
            from pgtrickle.commands import verify as command

            verified = command.verify(engine, name, timeout or None)
    if json:
        print_json(verified)
        return
    for table in verified:
        took = formatting.milliseconds(table.milliseconds)
        say([f"{table.name} equals its query: {formatting.counted(table.rows, 'row')} ({took})."])
    if not verified:
        say(["Nothing to compare: no stream table has been loaded yet."])
