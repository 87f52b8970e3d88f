"""The commands `apply` and `export`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

from rich.text import Text
from typer import Argument, BadParameter, Option, confirm

from pgtrickle.commands import definitions
from pgtrickle.commands.definitions import PlanAction, PlannedChange
from pgtrickle.interfaces.cli import formatting
from pgtrickle.interfaces.cli.options import Dsn, Json
from pgtrickle.interfaces.cli.printing import output, print_json, say
from pgtrickle.interfaces.cli.text_files import read_text
from pgtrickle.interfaces.ddl.definition_files import read_definitions

DefinitionsFile = Annotated[
    str,
    Option(
        "--file",
        "-f",
        show_default=False,
        metavar="FILE",
        help="A file of CREATE STREAM TABLE statements; - reads standard input.",
    ),
]
SetName = Annotated[
    str | None,
    Option(
        "--set",
        show_default=False,
        metavar="NAME",
        help="Remember under this name which stream tables the file created, and drop those that it no "
        "longer has. Without it, nothing is dropped.",
    ),
]
DryRun = Annotated[bool, Option("--dry-run", help="Show the plan and change nothing.")]
Yes = Annotated[bool, Option("--yes", "-y", help="Do not ask for confirmation.")]
Names = Annotated[
    list[str] | None,
    Argument(show_default=False, metavar="[NAME]...", help="Which stream tables. Without it, all of them."),
]

_SIGNS = {PlanAction.CREATE: "+ create", PlanAction.ALTER: "~ alter", PlanAction.DROP: "- drop"}


def apply(
    file: DefinitionsFile,
    set_name: SetName = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    dsn: Dsn = "",
    json: Json = False,
) -> None:
    """Make stream tables match a file of definitions.

    They are created, altered and dropped in one transaction, after the plan was shown. `pgtrickle export`
    writes such a file. An option that a definition does not give gets its default.
    """
    found = read_definitions(read_text(file))
    planned = definitions.plan(dsn, found, set_name)
    is_needed = any(change.action is not PlanAction.NONE for change in planned)
    if not json:
        _show(planned)
    if is_needed and not dry_run:
        _confirm(yes)
        definitions.apply(dsn, found, set_name, expected=planned)
    if json:
        print_json({"plan": planned, "is_applied": is_needed and not dry_run})
    elif is_needed:
        say(["Nothing was changed: this is a dry run." if dry_run else "Done."])


def export(names: Names = None, dsn: Dsn = "") -> None:
    """Print definitions as a file that `pgtrickle apply` reads."""
    sys.stdout.write(definitions.export(dsn, names or ()))


def _show(planned: Sequence[PlannedChange]) -> None:
    for change in planned:
        if change.action is not PlanAction.NONE:
            what = f": {', '.join(change.changes)}" if change.changes else ""
            output().print(Text(f"{_SIGNS[change.action]} {change.name}{what}"), soft_wrap=True)
    same = sum(change.action is PlanAction.NONE for change in planned)
    if same == len(planned):
        say([f"Nothing to do: {formatting.counted(same, 'stream table')} as defined."])
    elif same:
        say([f"{formatting.counted(same, 'stream table')} unchanged."])


def _confirm(yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise BadParameter("apply asks for confirmation, and there is no terminal to ask on: add --yes")
    confirm("Apply this plan?", abort=True, err=True)
