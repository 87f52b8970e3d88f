"""Places in a text."""

from __future__ import annotations


def place(text: str, at: int) -> str:
    """The line and column of a character, counted from 1."""
    return f"line {text.count(chr(10), 0, at) + 1}, column {at - text.rfind(chr(10), 0, at)}"
