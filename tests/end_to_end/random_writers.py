"""Applications drawn at random: conflicting changes on two connections that commit, roll back and overlap."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import psycopg

DECLARATIONS = (
    "alpha(id int primary key, k int, v numeric(8,2), s text, b bool)",
    "beta(id int primary key, k int not null, w bigint, d date)",
    "gamma(k int, x int, s text)",
    "delta(k int, g text, p numeric, b bool)",
)

_VALUES = {
    "k": ["0", "1", "2", "3", "null"],
    "v": ["0.50", "1.25", "-3.10", "7", "null"],
    "s": ["'a'", "'b'", "'A'", "''", "null"],
    "g": ["'a'", "'b'", "null"],
    "b": ["true", "false", "null"],
    "w": ["1", "2", "9000000000", "null"],
    "d": ["'2024-01-01'", "'2024-02-29'", "'infinity'", "null"],
    "x": ["0", "1", "-1", "null"],
    "p": ["1.5", "1.50", "0.3333333333", "10", "null"],
}
_COLUMNS = {
    "alpha": ("id", "k", "v", "s", "b"),
    "beta": ("id", "k", "w", "d"),
    "gamma": ("k", "x", "s"),
    "delta": ("k", "g", "p", "b"),
}
_KEYS = 16

_HARMLESS = (
    psycopg.errors.UniqueViolation,
    psycopg.errors.NotNullViolation,
    psycopg.errors.LockNotAvailable,
    psycopg.errors.SerializationFailure,
)


class _Regret(Exception):
    """The writer changes its mind."""


@dataclass(slots=True)
class Writer:
    """One connection with a transaction that may stay open; what it did is kept for the reader."""

    name: str
    connection: psycopg.Connection
    story: list[str] = field(default_factory=list)

    def acts(self, draw: Random) -> None:
        """A statement, or the end of the transaction."""
        choice = draw.random()
        if choice < 0.2:
            self.ends(draw)
        elif choice < 0.3:
            self._tries(draw, is_kept=False)
        else:
            self._tries(draw, is_kept=True)

    def ends(self, draw: Random) -> None:
        if draw.random() < 0.8:
            self._note("commit")
            self.connection.commit()
        else:
            self._note("rollback")
            self.connection.rollback()

    def _tries(self, draw: Random, *, is_kept: bool) -> None:
        statement = _statement(draw)
        try:
            with self.connection.transaction():
                self.connection.execute("set local lock_timeout = '20ms'")
                self.connection.execute(statement)
                if not is_kept:
                    raise _Regret
        except _Regret:
            self._note(f"{statement} -- rolled back to a savepoint")
        except _HARMLESS as error:
            self._note(f"{statement} -- {type(error).__name__}")
        else:
            self._note(statement)

    def _note(self, line: str) -> None:
        self.story.append(f"{self.name}: {line};")


def first_rows(draw: Random) -> list[str]:
    """Statements that fill the tables; now and then one stays empty."""
    statements = []
    for table, columns in _COLUMNS.items():
        if draw.random() < 0.1:
            continue
        for number in range(draw.randint(3, 10)):
            values = [str(number) if c == "id" else _value(draw, table, c) for c in columns]
            statements.append(f"insert into {table} values ({', '.join(values)})")
    return statements


def _value(draw: Random, table: str, column: str) -> str:
    if column == "id":
        return str(draw.randrange(_KEYS))
    values = _VALUES[column]
    if (table, column) == ("beta", "k"):
        values = values[:-1]
    return draw.choice(values)


def _statement(draw: Random) -> str:
    table = draw.choice(list(_COLUMNS))
    columns = _COLUMNS[table]
    kind = draw.random()
    if kind < 0.4:
        rows = [
            "(" + ", ".join(_value(draw, table, c) for c in columns) + ")" for _ in range(draw.randint(1, 2))
        ]
        return f"insert into {table} values {', '.join(rows)}"
    if kind < 0.7:
        chosen = draw.sample(columns, draw.randint(1, 2))
        assignments = [f"{c} = {_change(draw, table, c)}" for c in chosen]
        return f"update {table} set {', '.join(assignments)} where {_some(draw, table)}"
    return f"delete from {table} where {_some(draw, table)}"


def _change(draw: Random, table: str, column: str) -> str:
    """A new value: of the column itself, or of a key, or drawn."""
    if column in {"k", "x"} and table != "beta" and draw.random() < 0.3:
        return f"{column} + 1"
    return _value(draw, table, column)


def _some(draw: Random, table: str) -> str:
    column = draw.choice(_COLUMNS[table])
    value = _value(draw, table, column)
    condition = f"{column} is not distinct from {value}"
    if draw.random() < 0.5:
        # exactly one of several equal rows
        return f"ctid = (select ctid from {table} where {condition} limit 1)"
    return condition
