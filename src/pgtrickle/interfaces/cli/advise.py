"""The command `advise`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Option

from pgtrickle.interfaces.cli.options import Dsn, Json
from pgtrickle.interfaces.cli.printing import print_json, say

if TYPE_CHECKING:
    from pgtrickle.commands.advise import Advice, Candidate

Limit = Annotated[
    int,
    Option(
        "--limit", min=0, max=1000, metavar="N", help="How many statements to look at, the slowest in total."
    ),
]
WIDEST = 100
"""How much of a statement is shown."""


def advise(limit: Limit = 10, dsn: Dsn = "", json: Json = False) -> None:
    """Rank what would gain most as a stream table.

    Looks at your materialized views and, if pg_stat_statements is installed, at your slowest statements.
    Nothing is created or executed.
    """
    from pgtrickle.commands.advise import advise as command

    advice = command(dsn, limit)
    if json:
        print_json(advice)
    else:
        say(_sentences(advice))


def _sentences(advice: Advice) -> list[str]:
    lines = [line for number, one in enumerate(advice.candidates, 1) for line in _lines(number, one)]
    if not lines:
        lines = ["Nothing was found that could be a stream table."]
    return [*lines, *(f"Note: {note}." for note in advice.notes)]


def _lines(number: int, one: Candidate) -> list[str]:
    text = " ".join(one.query.split())
    title = (
        one.name if one.kind == "materialized view" else text[:WIDEST] + ("…" if len(text) > WIDEST else "")
    )
    if one.effective_mode is None:
        return [f"{number}. {one.kind} {title}", f"   Cannot be a stream table: {one.reason}"]
    because = f", because: {one.reason}" if one.reason else ""
    saved = "unknown" if one.saved_ms_per_hour is None else f"about {one.saved_ms_per_hour:,.0f} ms per hour"
    return [
        f"{number}. {one.kind} {title}",
        f"   Refresh mode: {one.effective_mode.value}{because}",
        f"   Saves: {saved} ({one.basis})",
        *(f"   Missing index: {index};" for index in one.missing_indexes),
        *(f"   Missing grant: {grant};" for grant in one.missing_grants),
        f"   Next: {one.next_step}",
    ]
