"""The command `preview`."""

from __future__ import annotations

import json as json_format
import os
from typing import Annotated

from rich.text import Text
from typer import Option

from pgtrickle.commands.serving import preview_served
from pgtrickle.interfaces.cli import formatting
from pgtrickle.interfaces.cli.command_engine import open_engine
from pgtrickle.interfaces.cli.options import Dsn, Json, Name
from pgtrickle.interfaces.cli.printing import output, print_json
from pgtrickle.interfaces.cli.progress import ProgressLine
from pgtrickle.model.changes import ChangeKind, Preview, PreviewedChange
from pgtrickle.model.json_values import json_value
from pgtrickle.model.settings import read_settings

MaxRows = Annotated[
    int, Option("--max-rows", min=0, max=1000, metavar="N", help="Show at most this many rows.")
]
PreviewTimeout = Annotated[
    float,
    Option("--timeout", min=0.1, max=3600, metavar="SECONDS", help="Give up after this long."),
]


def preview(
    name: Name, max_rows: MaxRows = 100, timeout: PreviewTimeout = 30.0, dsn: Dsn = "", json: Json = False
) -> None:
    """Show what the next refresh would change, changing nothing.

    A running sidecar computes it, for the owner of the stream table. Without one, this command starts
    its own Spark. While it runs, a refresh of the stream table waits.
    """
    with ProgressLine(f"Previewing {name}"):
        found = preview_served(dsn, name, timeout)
    if found is None:
        with open_engine(read_settings(os.environ, dsn=dsn), f"Previewing {name}", name) as engine:
            from pgtrickle.commands import preview as command

            found = command.preview(engine, name, timeout)
    found = found.first(max_rows)
    if json:
        print_json(found)
        return
    for line in _lines(found):
        output().print(Text(line), soft_wrap=True)


def _lines(found: Preview) -> list[str]:
    rows = f"+{formatting.count(found.rows_inserted)} −{formatting.count(found.rows_deleted)} rows"
    lines = [f"The next refresh of {found.name}: {found.action.value}, {rows} ({found.reason})."]
    lines += map(_line, found.changes)
    if found.is_truncated:
        lines.append("There are more: --max-rows shows up to 1,000.")
    return lines


def _line(change: PreviewedChange) -> str:
    sign = "+" if change.change is ChangeKind.INSERT else "-"
    times = f"{change.count} x " if change.count > 1 else ""
    return f"{sign} {times}{json_format.dumps(json_value(change.data), ensure_ascii=False)}"
