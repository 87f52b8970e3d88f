"""Prints values: tables and sentences for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pgtrickle.model.hints import Interface, render
from pgtrickle.model.json_values import json_value

if TYPE_CHECKING:
    from rich.console import Console

_WIDE = 400
"""Width without a terminal: wide enough that a program reading the output gets all of the text."""


def output() -> Console:
    """Standard output, for the result of the command only."""
    # imported here and below, because JSON needs none of it
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False, width=None if sys.stdout.isatty() else _WIDE)


def errors() -> Console:
    """Standard error, for errors and progress."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False, emoji=False)


def warn(sentence: str) -> None:
    """Print a warning to standard error."""
    console = errors()
    console.print(sentence, style="yellow", soft_wrap=not console.is_terminal)


def print_json(value: Any) -> None:
    """Print a value as indented JSON. Its keys are the field names, which are a stable interface."""
    sys.stdout.write(json.dumps(json_value(value), indent=2, ensure_ascii=False) + "\n")


def print_json_line(value: Any) -> None:
    """Print a value as one line of JSON and flush it, for programs that follow the output."""
    sys.stdout.write(json.dumps(json_value(value), ensure_ascii=False) + "\n")
    sys.stdout.flush()


def print_error_json(value: Any) -> None:
    """Print a value as one line of JSON to standard error."""
    sys.stderr.write(json.dumps(json_value(value), ensure_ascii=False) + "\n")
    sys.stderr.flush()


def say(sentences: Iterable[str]) -> None:
    """Print sentences, each on its own line, in the language of the command line."""
    console = output()
    for sentence in sentences:
        # a terminal would break long lines inside words
        console.print(render(sentence, Interface.CLI), soft_wrap=not console.is_terminal)
