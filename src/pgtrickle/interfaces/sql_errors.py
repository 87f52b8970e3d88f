"""Finds the errors that the SQL functions of pgtrickle raise, by reading their sources in the database."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from pgtrickle.model.errors import PgTrickleError, error_class
from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.statements import load

_CALL: Final = re.compile(r"\bpgtrickle(?:_internal)?\.(\w+)\s*\(")
_TEXT: Final = r"'((?:[^']|'')*)'"
_STRINGS: Final = re.compile(_TEXT)
_COMMENT: Final = re.compile(r"--[^\n]*")
# up to the semicolon that ends it; one inside a string does not
_RAISE: Final = re.compile(r"raise exception((?:[^;']|'(?:[^']|'')*')*);", re.IGNORECASE)
_CONDITION: Final = re.compile(r"errcode\s*=\s*" + _TEXT)
# %1$I and %s of format(), % of raise
_PLACEHOLDER: Final = re.compile(r"%(?:\d+\$)?[sIL]|%(?!%)")


@dataclass(frozen=True, slots=True, order=True)
class SqlError:
    """One error: its SQLSTATE, and its message with … for what varies."""

    sqlstate: str
    message: str

    @property
    def error(self) -> type[PgTrickleError]:
        """What it is called on the command line and in Python."""
        return error_class(self.sqlstate)


class SqlErrors:
    """The errors of each function, those of the functions it calls included."""

    def __init__(self, connection: Connection) -> None:
        sources: dict[str, str] = {}
        for name, source in connection.execute(load("pgtrickle.interfaces", "sql/function_sources.sql")):
            sources[name] = sources.get(name, "") + source
        connection.execute(load("pgtrickle.interfaces", "sql/condition_codes.sql"))
        self._calls = {name: _calls(source) & sources.keys() for name, source in sources.items()}
        found = {name: tuple(_errors(source)) for name, source in sources.items()}
        codes = _codes(connection, {condition for errors in found.values() for condition, _ in errors})
        self._own = {
            name: {SqlError(codes[condition], message) for condition, message in errors}
            for name, errors in found.items()
        }

    def of(self, function: str) -> list[SqlError]:
        """The errors that a call of this function can raise by itself, in the order of their SQLSTATEs."""
        reached, left = {function}, [function]
        while left:
            new = self._calls.get(left.pop(), set()) - reached
            reached |= new
            left.extend(new)
        return sorted(set().union(*(self._own.get(name, set()) for name in reached)))


def _calls(source: str) -> set[str]:
    """The functions of ours that a function calls. A hint that names one is not a call."""
    return set(_CALL.findall(_STRINGS.sub("", _COMMENT.sub("", source))))


def _errors(source: str) -> Iterable[tuple[str, str]]:
    for statement in _RAISE.findall(source):
        condition = _CONDITION.search(statement)
        texts = [text for text in _STRINGS.findall(statement.partition(" using")[0]) if text != "%"]
        if condition and texts:
            yield condition[1], _PLACEHOLDER.sub("…", texts[0].replace("''", "'")).replace("%%", "%")


def _codes(connection: Connection, conditions: set[str]) -> Mapping[str, str]:
    rows = connection.execute(
        "select c, pg_temp.sqlstate_of(c) from unnest(%s::text[]) c", (sorted(conditions),)
    )
    return dict(rows.fetchall())
