"""Runs statements, each through the command that the CLI has for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import assert_never

from pgtrickle.commands import define
from pgtrickle.interfaces.ddl.statements import Alter, Create, Drop, Placed, Refresh, Statement
from pgtrickle.model.errors import PgTrickleError, UnknownStreamTable


@dataclass(frozen=True, slots=True)
class Done:
    """What became of one statement."""

    statement: str
    name: str
    what: str


def run(dsn: str, statements: Sequence[Placed], refresh: Callable[[str], str]) -> Iterator[Done]:
    """Run them one after the other; each is kept by itself, and the first that fails ends it.

    `refresh` refreshes the stream table of a name and says what that did.
    """
    for placed in statements:
        try:
            yield _done(dsn, placed.statement, refresh)
        except PgTrickleError as error:
            error.message = f"{placed.place}: {error.message}"
            raise


def _done(dsn: str, statement: Statement, refresh: Callable[[str], str]) -> Done:
    match statement:
        case Create():
            return Done("create", statement.name, _created(dsn, statement))
        case Alter(name, options, query):
            changes = {**options, **({} if query is None else {"query": query})}
            define.alter(dsn, name, changes)
            return Done("alter", name, f"Altered stream table {name}: {', '.join(changes)}.")
        case Drop(name, only_if_there, cascades):
            try:
                define.drop(dsn, name, cascade=cascades)
            except UnknownStreamTable:
                if not only_if_there:
                    raise
                return Done("drop", name, f"There is no stream table {name}.")
            return Done("drop", name, f"Dropped stream table {name}.")
        case Refresh(name):
            return Done("refresh", name, refresh(name))
        case _:
            assert_never(statement)


def _created(dsn: str, create: Create) -> str:
    if create.only_if_new:
        if not define.create_if_new(dsn, create.name, create.query, create.options):
            return f"Stream table {create.name} exists already and stays as it is."
    elif create.replaces:
        define.create_or_replace(dsn, create.name, create.query, create.options)
        return f"Created or replaced stream table {create.name}."
    else:
        define.create(dsn, create.name, create.query, create.options)
    return f"Created stream table {create.name}."
