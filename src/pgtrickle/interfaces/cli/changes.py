"""The command `changes`."""

from __future__ import annotations

import json as json_format
from typing import Annotated

from rich.text import Text
from typer import BadParameter, Option

from pgtrickle.commands import changes as command
from pgtrickle.commands.changes import Since
from pgtrickle.interfaces.cli.options import Dsn, Name
from pgtrickle.interfaces.cli.printing import output, print_json_line
from pgtrickle.model.changes import Change, ChangeKind
from pgtrickle.model.json_values import json_value

SincePoint = Annotated[
    str | None,
    Option(
        "--since",
        show_default=False,
        metavar="POINT",
        help="Show what comes after this point; now shows only what is still to come. Without it, show "
        "everything that is kept.",
    ),
]
Follow = Annotated[bool, Option("--follow", help="Wait for further changes until Ctrl-C.")]
JsonLines = Annotated[
    bool, Option("--json", help="Print each change as one line of JSON, and an error as JSON.")
]


def changes(
    name: Name, since: SincePoint = None, follow: Follow = False, dsn: Dsn = "", json: JsonLines = False
) -> None:
    """Show the rows that refreshes inserted and deleted.

    The stream table must keep them: `pgtrickle alter NAME --keep-changes 1d`. Each change has a point; to
    continue after it, give it as --since.
    """
    for change in command.changes(dsn, name, _point(since), follow=follow):
        if json:
            print_json_line(change)
        else:
            output().print(Text(_line(change)), soft_wrap=True)


def _point(given: str | None) -> Since:
    if given is None:
        return None
    if given == "now":
        return "now"
    try:
        return int(given)
    except ValueError:
        raise BadParameter(
            f"{given!r} is not a point: give its number, or now", param_hint="--since"
        ) from None


def _line(change: Change) -> str:
    if change.change is ChangeKind.RESET:
        return f"{change.point}  reset: {change.reason}. Read the stream table again."
    sign = "+" if change.change is ChangeKind.INSERT else "-"
    times = f"{change.count} x " if change.count > 1 else ""
    return f"{change.point}  {sign} {times}{json_format.dumps(json_value(change.data), ensure_ascii=False)}"
