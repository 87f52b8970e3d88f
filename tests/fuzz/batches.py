"""What applications do between refreshes: conflicting changes on two connections that end or stay open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Final

from tests.fuzz.tables import Table

WRITERS: Final = ("first", "second")


class Kind(Enum):
    """What a writer does; its transaction begins by itself."""

    RUN = "run"
    UNDONE = "rolled back to a savepoint"
    COMMIT = "commit"
    ROLLBACK = "rollback"


@dataclass(frozen=True, slots=True)
class Step:
    """One act of one writer."""

    writer: str
    kind: Kind
    sql: str = ""

    def __str__(self) -> str:
        if self.kind is Kind.RUN:
            return f"{self.sql};  -- {self.writer}"
        if self.kind is Kind.UNDONE:
            return f"savepoint s; {self.sql}; rollback to s;  -- {self.writer}"
        return f"{self.kind.value};  -- {self.writer}"


Window = tuple[Step, ...]
"""What happens between two refreshes."""


def drawn_window(draw: Random, tables: Sequence[Table]) -> Window:
    """Some steps; most transactions end before the refresh, others stay open across it."""
    steps = [_step(draw, tables) for _ in range(draw.choice([0, 2, 4, 6, 8, 10]))]
    # nobody reads a table while its truncation is not over
    is_blocking = any(step.sql.startswith("truncate") for step in steps)
    for writer in WRITERS:
        if is_blocking or draw.random() < 0.8:
            steps.append(_end(draw, writer))
    return tuple(steps)


def _step(draw: Random, tables: Sequence[Table]) -> Step:
    writer = draw.choice(WRITERS)
    choice = draw.random()
    if choice < 0.15:
        return _end(draw, writer)
    kind = Kind.UNDONE if choice < 0.22 else Kind.RUN
    return Step(writer, kind, _statement(draw, draw.choice(tables)))


def _end(draw: Random, writer: str) -> Step:
    return Step(writer, Kind.COMMIT if draw.random() < 0.85 else Kind.ROLLBACK)


def _statement(draw: Random, table: Table) -> str:
    write = draw.choices(list(_STATEMENTS), list(_STATEMENTS.values()))[0]
    return write(draw, table)


def _insert(draw: Random, table: Table) -> str:
    rows = ", ".join(table.drawn_row(draw) for _ in range(draw.randint(1, 3)))
    conflict = " on conflict do nothing" if table.key and draw.random() < 0.4 else ""
    return f"insert into {table.name} values {rows}{conflict}"


def _insert_again(draw: Random, table: Table) -> str:
    """Copies of rows that are there."""
    conflict = " on conflict do nothing" if table.key else ""
    return f"insert into {table.name} select * from {table.name} where {_some(draw, table)}{conflict}"


def _update(draw: Random, table: Table) -> str:
    chosen = draw.sample(list(table.columns), draw.randint(1, 2))
    changes = ", ".join(f"{column} = {_changed(draw, table, column)}" for column in chosen)
    return f"update {table.name} set {changes} where {_some(draw, table)}"


def _update_all(draw: Random, table: Table) -> str:
    column = draw.choice([name for name in table.columns if name not in table.key])
    return f"update {table.name} set {column} = {_changed(draw, table, column)}"


def _delete(draw: Random, table: Table) -> str:
    return f"delete from {table.name} where {_some(draw, table)}"


def _move(draw: Random, table: Table) -> str:
    """Rows deleted and inserted again by one statement, changed on the way."""
    column = draw.choice(list(table.columns))
    shown = [_changed(draw, table, name) if name == column else name for name in table.columns]
    gone = f"with gone as (delete from {table.name} where {_some(draw, table)} returning *)"
    return f"{gone} insert into {table.name} select {', '.join(shown)} from gone"


def _upsert(draw: Random, table: Table) -> str:
    if not table.key:
        return _insert(draw, table)
    column = draw.choice([name for name in table.columns if name not in table.key])
    target = f"on conflict ({', '.join(table.key)}) do update set {column} = excluded.{column}"
    return f"insert into {table.name} values {table.drawn_row(draw)} {target}"


def _truncate(draw: Random, table: Table) -> str:
    return f"truncate {table.name}"


def _changed(draw: Random, table: Table, column: str) -> str:
    """A new value: computed of the old one, or drawn."""
    if table.columns[column] == "int" and draw.random() < 0.3:
        return f"({column} + 1) % 4" if column not in table.key else f"{column} + 1"
    return table.drawn(draw, column)


def _some(draw: Random, table: Table) -> str:
    column = draw.choice(list(table.columns))
    condition = f"{column} is not distinct from {table.drawn(draw, column)}"
    if draw.random() < 0.4:
        # exactly one of several equal rows
        return f"ctid = (select ctid from {table.name} where {condition} limit 1)"
    return condition


_STATEMENTS: Final[dict[Callable[[Random, Table], str], float]] = {
    _insert: 5.0,
    _insert_again: 1.0,
    _update: 5.0,
    _update_all: 0.4,
    _delete: 3.0,
    _move: 1.0,
    _upsert: 1.0,
    _truncate: 0.15,
}
