"""Executes statements, each by the command that the CLI uses for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import assert_never

from pgtrickle.commands import define
from pgtrickle.interfaces.ddl.statements import Alter, Create, Drop, PlacedStatement, Refresh, Statement
from pgtrickle.model.errors import PgTrickleError, UnknownStreamTable
from pgtrickle.model.records import Record


@dataclass(frozen=True, slots=True, repr=False)
class StatementResult(Record):
    """The result of one statement; `sentence` says what it did."""

    statement: str
    name: str
    sentence: str


def execute(
    dsn: str, statements: Sequence[PlacedStatement], refresh: Callable[[str], str]
) -> Iterator[StatementResult]:
    """Execute statements one after the other. Each commits by itself, and the first failure ends the run.

    `refresh` refreshes a stream table by name and returns a sentence that says what it did.
    """
    for placed in statements:
        try:
            yield _execute(dsn, placed.statement, refresh)
        except PgTrickleError as error:
            error.message = f"{placed.place}: {error.message}"
            raise


def _execute(dsn: str, statement: Statement, refresh: Callable[[str], str]) -> StatementResult:
    match statement:
        case Create():
            return StatementResult("create", statement.name, _create(dsn, statement))
        case Alter(name, options, query):
            changes = {**options, **({} if query is None else {"query": query})}
            define.alter(dsn, name, changes)
            return StatementResult("alter", name, f"Altered stream table {name}: {', '.join(changes)}.")
        case Drop(name, if_exists, cascade):
            try:
                dropped = define.drop(dsn, name, cascade=cascade)
            except UnknownStreamTable:
                if not if_exists:
                    raise
                return StatementResult("drop", name, f"There is no stream table {name}. Nothing was dropped.")
            noun = "stream table" if len(dropped) == 1 else "stream tables"
            return StatementResult("drop", name, f"Dropped {noun} {', '.join(dropped)}.")
        case Refresh(name):
            return StatementResult("refresh", name, refresh(name))
        case _:
            assert_never(statement)


def _create(dsn: str, create: Create) -> str:
    if create.if_not_exists:
        if not define.create_if_not_exists(dsn, create.name, create.query, create.options):
            return f"Stream table {create.name} already exists and was not changed."
    elif create.or_replace:
        define.create_or_replace(dsn, create.name, create.query, create.options)
        return f"Created or replaced stream table {create.name}."
    else:
        define.create(dsn, create.name, create.query, create.options)
    return f"Created stream table {create.name}."
