"""The line of a query that an error is about, with a caret below the mistake."""

from __future__ import annotations

from typing import Final

_WIDEST: Final = 72
"""Longer lines are cut, so that the caret stays below its place on most terminals."""
_BEFORE: Final = 48
"""How much of a long line is shown before the mistake."""


def excerpt(query: str | None, position: str | None) -> str | None:
    """`LINE 2: …` and a caret, as psql shows it; None if the place is unknown. Positions count from 1."""
    if not query or not position or not 0 < int(position) <= len(query) + 1:
        return None
    at = int(position) - 1
    start = query.rfind("\n", 0, at) + 1
    number = query.count("\n", 0, at) + 1
    line = query[start:].partition("\n")[0].rstrip("\r").expandtabs(1)
    column = at - start
    if len(line) > _WIDEST and column > _BEFORE:
        cut = column - _BEFORE
        line, column = f"…{line[cut:]}", _BEFORE + 1
    if len(line) > _WIDEST:
        line = f"{line[: _WIDEST - 1]}…"
    label = f"LINE {number}: "
    return f"{label}{line}\n{' ' * (len(label) + column)}^"
