"""Prints values: as tables and sentences for people, as JSON for programs."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterable
from datetime import datetime
from enum import Enum
from typing import Any

from rich.console import Console

from pgtrickle.model.names import RelationName

_WIDE = 400
"""Columns where there is no terminal: whoever reads the text next should get all of it."""


def output() -> Console:
    """Standard output: what was asked for, and nothing else."""
    return Console(highlight=False, markup=False, emoji=False, width=None if sys.stdout.isatty() else _WIDE)


def errors() -> Console:
    """Standard error: what went wrong, and what is going on."""
    return Console(stderr=True, highlight=False, markup=False, emoji=False)


def warn(sentence: str) -> None:
    """A sentence beside what was asked for."""
    errors().print(sentence, style="yellow", soft_wrap=True)


def print_json(value: Any) -> None:
    """The value as indented JSON; keys are the names of its fields, and stay."""
    sys.stdout.write(json.dumps(plain(value), indent=2, ensure_ascii=False) + "\n")


def print_json_line(value: Any) -> None:
    """The value as one line of JSON, at once, for whoever follows."""
    sys.stdout.write(json.dumps(plain(value), ensure_ascii=False) + "\n")
    sys.stdout.flush()


def plain(value: Any) -> Any:
    """The value in what JSON has."""
    match value:
        case RelationName():
            return str(value)
        case Enum():
            return value.value
        case datetime():
            return value.isoformat()
        case dict():
            return {key: plain(part) for key, part in value.items()}
        case list() | tuple():
            return [plain(part) for part in value]
        case _ if dataclasses.is_dataclass(value):
            return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        case _:
            return value


def say(sentences: Iterable[str]) -> None:
    """Sentences, one on a line."""
    console = output()
    for sentence in sentences:
        console.print(sentence, soft_wrap=True)
