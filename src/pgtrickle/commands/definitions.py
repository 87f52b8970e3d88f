"""Stream tables as a file of definitions: export them, and create, alter and drop them to match a file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from graphlib import CycleError, TopologicalSorter
from time import sleep
from typing import Final

from pgtrickle.commands.connections import check_known, open_as_author, open_installed, to_error
from pgtrickle.commands.define import RETRY_PAUSES
from pgtrickle.commands.fit_definition import Fitted, fit, name_of, tables_of_set
from pgtrickle.model.errors import BadStatement, Busy, PgTrickleError, WrongState
from pgtrickle.model.places import place
from pgtrickle.model.records import Record
from pgtrickle.postgres.connection import Connection, DatabaseError, check_writable
from pgtrickle.postgres.statements import load

_MISSING: Final = frozenset({"42P01", "42703"})
"""A table or a column does not exist: a definition further down may create it."""
_WORD: Final = re.compile(r'"(?:[^"]|"")+"|\w+')


class PlanAction(Enum):
    """What to do about a stream table."""

    CREATE = "create"
    ALTER = "alter"
    DROP = "drop"
    NONE = "none"


@dataclass(frozen=True, slots=True, repr=False)
class PlannedChange(Record):
    """What a file of definitions asks for: `changes` names the options that are altered, or `query`.

    `settings` means that the query gets the settings of your session, on which its meaning depends.
    """

    action: PlanAction
    name: str
    changes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """One CREATE STREAM TABLE; `start` and `query_start` are places in the text of its file."""

    name: str
    query: str
    options: Mapping[str, str | bool | None]
    start: int = 0
    query_start: int = 0


@dataclass(frozen=True, slots=True)
class DefinitionFile:
    """The text of a file, and the definitions in it."""

    text: str
    definitions: tuple[TableDefinition, ...]


def export(dsn: str, names: Sequence[str] = ()) -> str:
    """The definitions of these stream tables, or of all: those that are read before their readers."""
    with open_installed(dsn) as connection:
        wanted = {check_known(connection, name) for name in names}
        rows = connection.execute(load("pgtrickle.commands", "sql/definition_texts.sql")).fetchall()
    return "\n".join(text for name, text in rows if not names or name in wanted)


def plan(dsn: str, file: DefinitionFile, set_name: str | None = None) -> list[PlannedChange]:
    """What it takes to make the stream tables match a file; nothing is changed.

    Stream tables that the set of this name created and that the file no longer has are dropped; without a
    set, none is.
    """
    with _connection(dsn) as connection, connection.transaction(force_rollback=True):
        return _match(connection, file, set_name)


def apply(
    dsn: str,
    file: DefinitionFile,
    set_name: str | None = None,
    *,
    expected: Sequence[PlannedChange] | None = None,
) -> list[PlannedChange]:
    """Make the stream tables match a file, in one transaction; return what was done.

    Raise if that is not what was `expected`, because somebody changed something since it was planned.
    """
    for pause in (*RETRY_PAUSES, None):
        try:
            with _connection(dsn) as connection, connection.transaction():
                done = _match(connection, file, set_name)
                if expected is not None and list(expected) != done:
                    raise WrongState(
                        "the stream tables were changed since this was planned", hint="plan it again"
                    )
                return done
        except Busy:
            if pause is None:
                raise
            sleep(pause)
    raise AssertionError("the last attempt returns or raises")


@contextmanager
def _connection(dsn: str) -> Iterator[Connection]:
    with open_as_author(dsn) as connection:
        check_writable(connection)
        yield connection


def _match(connection: Connection, file: DefinitionFile, set_name: str | None) -> list[PlannedChange]:
    _check_names(connection, file)
    left, done = _in_order(file.definitions), dict[int, PlannedChange]()
    while left:
        waiting: list[tuple[TableDefinition, DatabaseError]] = []
        for definition in left:
            with _placed_errors(connection, file, definition):
                try:
                    with connection.transaction():
                        fitted = fit(
                            connection, definition.name, definition.query, definition.options, set_name
                        )
                except DatabaseError as error:
                    if error.sqlstate not in _MISSING:
                        raise
                    waiting.append((definition, error))
                else:
                    done[definition.start] = _planned(fitted)
        if len(waiting) == len(left):
            with _placed_errors(connection, file, waiting[0][0]):
                raise waiting[0][1]
        left = [definition for definition, _ in waiting]
    kept = [done[definition.start] for definition in file.definitions]
    return [*kept, *_drop_rest(connection, {change.name for change in kept}, set_name)]


def _planned(fitted: Fitted) -> PlannedChange:
    if fitted.is_new:
        return PlannedChange(PlanAction.CREATE, fitted.name)
    action = PlanAction.ALTER if fitted.changes else PlanAction.NONE
    return PlannedChange(action, fitted.name, fitted.changes)


def _drop_rest(connection: Connection, kept: set[str], set_name: str | None) -> list[PlannedChange]:
    """Drop what the set created and the file no longer has, readers before what they read."""
    if set_name is None:
        return []
    dropped = [name for name in tables_of_set(connection, set_name) if name not in kept]
    for name in dropped:
        connection.execute("select pgtrickle.drop_stream_table(%s)", (name,))
    return [PlannedChange(PlanAction.DROP, name) for name in dropped]


def _check_names(connection: Connection, file: DefinitionFile) -> None:
    """Raise if a name is wrong, or if two definitions have the same."""
    seen: dict[str, TableDefinition] = {}
    for definition in file.definitions:
        with _placed_errors(connection, file, definition), connection.transaction():
            name = name_of(connection, definition.name)
        if name in seen:
            where, first = place(file.text, definition.start), place(file.text, seen[name].start)
            raise BadStatement(
                f"{where}: {name} is defined twice",
                hint=f"the other definition is at {first}; keep one of them",
            )
        seen[name] = definition


def _in_order(definitions: Sequence[TableDefinition]) -> list[TableDefinition]:
    """The definitions, each after those whose names its query mentions. Only PostgreSQL knows for sure."""
    by_name = {_bare_name(definition.name): definition for definition in definitions}
    places = {id(definition): number for number, definition in enumerate(definitions)}
    graph: dict[int, set[int]] = {}
    for definition in definitions:
        words = {_plain(word) for word in _WORD.findall(definition.query)}
        found = (by_name[word] for word in words if word in by_name)
        graph[places[id(definition)]] = {places[id(other)] for other in found if other is not definition}
    try:
        return [definitions[number] for number in TopologicalSorter(graph).static_order()]
    except CycleError:
        return list(definitions)


def _bare_name(name: str) -> str:
    return _plain(_WORD.findall(name)[-1])


def _plain(word: str) -> str:
    return word[1:-1].replace('""', '"') if word.startswith('"') else word.lower()


@contextmanager
def _placed_errors(
    connection: Connection, file: DefinitionFile, definition: TableDefinition
) -> Iterator[None]:
    """Say where in the file an error is: in the query if PostgreSQL tells, else at the statement."""
    at = definition.start
    try:
        try:
            yield
        except DatabaseError as error:
            position = error.diag.internal_position
            if position and error.diag.internal_query == definition.query:
                at = definition.query_start + int(position) - 1
            raise to_error(connection, error) from error
    except PgTrickleError as error:
        error.message = f"{place(file.text, at)}: {error.message}"
        raise
