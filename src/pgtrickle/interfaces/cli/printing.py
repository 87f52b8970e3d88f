"""Prints values: tables and sentences for people, JSON for programs."""

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
"""Width without a terminal: wide enough that a program reading the output gets all of the text."""


def output() -> Console:
    """Standard output, for the result of the command only."""
    return Console(highlight=False, markup=False, emoji=False, width=None if sys.stdout.isatty() else _WIDE)


def errors() -> Console:
    """Standard error, for errors and progress."""
    return Console(stderr=True, highlight=False, markup=False, emoji=False)


def warn(sentence: str) -> None:
    """Print a warning to standard error."""
    errors().print(sentence, style="yellow", soft_wrap=True)


def print_json(value: Any) -> None:
    """Print a value as indented JSON. Its keys are the field names, which are a stable interface."""
    sys.stdout.write(json.dumps(json_value(value), indent=2, ensure_ascii=False) + "\n")


def print_json_line(value: Any) -> None:
    """Print a value as one line of JSON and flush it, for programs that follow the output."""
    sys.stdout.write(json.dumps(json_value(value), ensure_ascii=False) + "\n")
    sys.stdout.flush()


def json_value(value: Any) -> Any:
    """The value as JSON types."""
    match value:
        case RelationName():
            return str(value)
        case Enum():
            return value.value
        case datetime():
            return value.isoformat()
        case dict():
            return {key: json_value(part) for key, part in value.items()}
        case list() | tuple():
            return [json_value(part) for part in value]
        case _ if dataclasses.is_dataclass(value):
            return {field.name: json_value(getattr(value, field.name)) for field in dataclasses.fields(value)}
        case _:
            return value


def say(sentences: Iterable[str]) -> None:
    """Print sentences, one per line."""
    console = output()
    for sentence in sentences:
        console.print(sentence, soft_wrap=True)
