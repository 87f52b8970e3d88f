"""A round: tables with rows, queries over them, and windows of changes. One seed makes one round."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

from tests.fuzz.batches import Window, drawn_window
from tests.fuzz.queries import drawn_query
from tests.fuzz.tables import Table, drawn_rows, drawn_tables

QUERIES: Final = 14
WINDOWS: Final = 4


@dataclass(frozen=True, slots=True)
class Round:
    """Everything that happens in one round, known before it begins."""

    tables: tuple[Table, ...]
    rows: dict[str, tuple[str, ...]]
    queries: tuple[str, ...]
    windows: tuple[Window, ...]

    @property
    def arrangement(self) -> list[str]:
        """The statements that create and fill the tables."""
        statements = [f"create table {table.declaration}" for table in self.tables]
        for table in self.tables:
            if self.rows[table.name]:
                statements.append(f"insert into {table.name} values {', '.join(self.rows[table.name])}")
        return statements


def drawn_round(seed: int) -> Round:
    """The round of a seed. A query depends on its number alone, so that one left out moves no other."""
    draw = Random(seed)
    tables = drawn_tables(draw)
    return Round(
        tables=tables,
        rows=drawn_rows(draw, tables),
        queries=tuple(drawn_query(f"{seed}/{number}", tables) for number in range(QUERIES)),
        windows=tuple(drawn_window(draw, tables) for _ in range(WINDOWS)),
    )
