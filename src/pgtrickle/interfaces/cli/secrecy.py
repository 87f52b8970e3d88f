"""Keeps connection strings out of the process list, where every user could read a password."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from pgtrickle.model.http_settings import HTTP_DSN
from pgtrickle.model.settings import DSN, LISTEN_DSN

_VARIABLES: Final = {setting.option: setting.variable for setting in (DSN, LISTEN_DSN, HTTP_DSN)}


def hide_dsn() -> None:
    """Restart the process with connection strings moved from the arguments to the private environment."""
    arguments, found = without_dsn(sys.argv[1:])
    if not found:
        return
    before = sys.orig_argv[1 : len(sys.orig_argv) - len(sys.argv[1:])]
    os.environ.update(found)
    os.execv(sys.executable, [sys.executable, *before, *arguments])


def without_dsn(arguments: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """The arguments without `--dsn VALUE` or `--dsn=VALUE`, and the values by environment variable.

    `run` takes several addresses. They are separated by newlines, and `--dsn=` says that they were given.
    """
    kept: list[str] = []
    found: dict[str, str] = {}
    addresses: list[str] = []
    remaining = iter(arguments)
    for argument in remaining:
        option, has_value, value = argument.partition("=")
        variable = _VARIABLES.get(option)
        if argument == "--":
            kept += [argument, *remaining]
        elif variable is None:
            kept.append(argument)
        else:
            given = value if has_value else next(remaining, None)
            if given is None:
                # left for typer, which reports the missing value
                kept.append(argument)
            elif given:
                found[variable] = given
                addresses += [given] if variable == DSN.variable else []
            else:
                kept.append(argument)
    if addresses and next((word for word in kept if not word.startswith("-")), None) == "run":
        found[DSN.variable] = "\n".join(addresses)
        kept.append(f"{DSN.option}=")
    return kept, found


def given_addresses(dsns: Sequence[str] | None, environment: Mapping[str, str]) -> tuple[str, ...]:
    """The addresses that `run` was given, wherever they are now."""
    if dsns is None:
        return ()
    named = tuple(dsn for dsn in dsns if dsn)
    return named or tuple(environment.get(DSN.variable, "").split("\n"))
