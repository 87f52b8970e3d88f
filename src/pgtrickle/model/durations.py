"""Formats durations as text."""

from __future__ import annotations


def duration_text(seconds: float) -> str:
    """A duration in its largest units: `1 h 30 min`, `5 min`, `2.5 s`."""
    if seconds < 60:
        return f"{seconds:g} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [(hours, "h"), (minutes, "min"), (rest, "s")]
    return " ".join(f"{number} {unit}" for number, unit in parts if number)
