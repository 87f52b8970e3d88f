"""Messages and hints as sentences on one line."""

from __future__ import annotations


def sentence(text: str) -> str:
    """The text on one line, with a full stop unless it ends otherwise."""
    line = " ".join(text.split())
    return line if line.endswith((".", "?", "!", ":")) else f"{line}."


def advice(hint: str) -> str:
    """A hint as a sentence; one that is a GRANT stays as SQL is written."""
    line = sentence(hint)
    return line if line.startswith("grant ") else line[0].upper() + line[1:]
