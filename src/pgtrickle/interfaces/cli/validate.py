"""The command `validate`, and what `create --dry-run` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typer import BadParameter, Exit

from pgtrickle.interfaces.cli.options import Dsn, Json, Mode, Query, QueryFile
from pgtrickle.interfaces.cli.printing import print_json, say
from pgtrickle.interfaces.cli.text_files import query_text

if TYPE_CHECKING:
    from pgtrickle.commands.validate import Validation

INCOMPLETE = 2
"""The exit code if a grant is missing."""


def validate(
    query: Query = None, query_file: QueryFile = None, mode: Mode = None, dsn: Dsn = "", json: Json = False
) -> None:
    """Check a query without creating anything.

    Shows how it would be refreshed and why, and which indexes and grants are missing. Needs no Spark.
    """
    text = query_text(query, query_file)
    if text is None:
        raise BadParameter("the query is missing: give --query or --query-file")
    show_validation(dsn, text, mode, None, json)


def show_validation(dsn: str, query: str, mode: str | None, name: str | None, json: bool) -> None:
    """Validate a query and print the result; exit with an error if a grant is missing."""
    from pgtrickle.commands.validate import validate as command

    found = command(dsn, query, mode or "AUTO", name)
    if json:
        print_json(found)
    else:
        say(_sentences(found))
    if found.missing_grants:
        raise Exit(INCOMPLETE)


def _sentences(found: Validation) -> list[str]:
    because = f", because: {found.reason}" if found.reason else ""
    lines = [
        f"Refresh mode: {found.effective_mode.value} (requested: {found.asked_mode.value}){because}",
        f"Reads: {', '.join(found.sources) or 'no tables'}",
        *(["If all of them change, a refresh reads:"] if found.reads else []),
        *(f"  {read}" for read in found.reads),
        "Missing indexes: none" if not found.missing_indexes else "Missing indexes:",
        *(f"  {index};" for index in found.missing_indexes),
        "Missing grants: none" if not found.missing_grants else "Missing grants:",
        *(f"  {grant};" for grant in found.missing_grants),
    ]
    return [*lines, "Nothing was created."]
