"""Keeps connection strings out of the process list, where everybody could read a password."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Final

DSN_VARIABLE: Final = "PGTRICKLE_DSN"
_OPTION: Final = "--dsn"


def hide_dsn() -> None:
    """Begin again without `--dsn` in the arguments: its value moves to the environment, which is private."""
    arguments, dsn = without_dsn(sys.argv[1:])
    if dsn is None:
        return
    before = sys.orig_argv[1 : len(sys.orig_argv) - len(sys.argv[1:])]
    os.environ[DSN_VARIABLE] = dsn
    os.execv(sys.executable, [sys.executable, *before, *arguments])


def without_dsn(arguments: Sequence[str]) -> tuple[list[str], str | None]:
    """The arguments without `--dsn VALUE` or `--dsn=VALUE`, and the value; None if there is none."""
    kept: list[str] = []
    dsn: str | None = None
    remaining = iter(arguments)
    for argument in remaining:
        if argument == "--":
            kept += [argument, *remaining]
        elif argument == _OPTION:
            value = next(remaining, None)
            if value is None:
                # left for the parser, which says what is missing
                kept.append(argument)
            dsn = value if value is not None else dsn
        elif argument.startswith(f"{_OPTION}="):
            dsn = argument.removeprefix(f"{_OPTION}=")
        else:
            kept.append(argument)
    return kept, dsn
