"""What the shell completes: names of stream tables and sources, from the database, quickly or not at all."""

from __future__ import annotations

import os
import shlex
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

import typer

from pgtrickle.model.settings import DSN

VARIABLE: Final = "_PGTRICKLE_COMPLETE"
"""Set by the shell when it asks for completions."""
PATIENCE_SECONDS: Final = 0.25
"""A database that has not answered by then completes nothing. The user waits for the prompt."""

_STREAM_TABLES: Final = "sql/complete_stream_tables.sql"
_SOURCES: Final = "sql/complete_sources.sql"


class _Found(str):
    """A completion that begins otherwise than what was typed: quoted for the shell, or in upper case."""

    __slots__ = ()

    def startswith(self, *_: object) -> bool:
        # typer drops completions that do not begin with the typed text; these have been compared
        return True


def stream_tables(ctx: typer.Context, incomplete: str) -> list[str]:
    """The stream tables whose names begin like this."""
    return _completed(ctx, incomplete, _STREAM_TABLES)


def sources(ctx: typer.Context, incomplete: str) -> list[str]:
    """The tables that stream tables read, whose names begin like this."""
    return _completed(ctx, incomplete, _SOURCES)


def choices(values: Sequence[str]) -> Callable[[str], list[str]]:
    """Completes one of some words, in upper or lower case."""

    def found(incomplete: str) -> list[str]:
        return [_Found(value) for value in values if value.lower().startswith(incomplete.lower())]

    return found


def completed_command(environment: Mapping[str, str]) -> list[str] | None:
    """The words before the one that is completed, without the program; None if nothing is completed."""
    instruction = environment.get(VARIABLE)
    if not instruction:
        return None
    text = environment.get("COMP_WORDS") or environment.get("_TYPER_COMPLETE_ARGS") or ""
    words = text.split()
    last = int(environment.get("COMP_CWORD") or (len(words) if text.endswith(" ") else len(words) - 1))
    return words[1 : max(last, 1)]


def _completed(ctx: typer.Context, incomplete: str, statement: str) -> list[str]:
    # bash inserts what it gets as it is; other shells quote it
    is_bash = os.environ.get(VARIABLE, "").endswith("_bash")
    names = _names(str(ctx.params.get("dsn") or os.environ.get(DSN.variable) or ""), statement)
    found = [name for name in names if name.startswith(incomplete)]
    return [_Found(shlex.quote(name)) if is_bash else name for name in found]


def _names(dsn: str, statement: str) -> list[str]:
    """The names, or none if anything goes wrong: a shell has no place for errors."""
    from pgtrickle.postgres.connection import connect_as_author
    from pgtrickle.postgres.statements import load

    found: list[str] = []

    def read() -> None:
        with suppress(Exception), connect_as_author(dsn) as connection:
            found.extend(row[0] for row in connection.execute(load("pgtrickle.interfaces", statement)))

    # a daemon: the process ends although the database has not answered
    reader = threading.Thread(target=read, name="completion", daemon=True)
    reader.start()
    reader.join(PATIENCE_SECONDS)
    return list(found)
