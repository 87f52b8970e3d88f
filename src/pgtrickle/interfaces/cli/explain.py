"""The command `explain`."""

from __future__ import annotations

import os

from rich.text import Text

from pgtrickle.interfaces.cli.command_engine import check_arguments, open_engine
from pgtrickle.interfaces.cli.options import Dsn, Json, Name
from pgtrickle.interfaces.cli.printing import output, print_json
from pgtrickle.model.settings import read_settings


def explain(name: Name, dsn: Dsn = "", json: Json = False) -> None:
    """Show how a stream table is refreshed, or why it is FULL."""
    check_arguments(dsn, name)
    with open_engine(read_settings(os.environ, dsn=dsn), f"Compiling {name}") as engine:
        from pgtrickle.commands import explain as command

        explanation = command.explain(engine, name)
    if json:
        print_json(explanation)
        return
    output().print(Text(explanation.text.rstrip()), soft_wrap=True)
