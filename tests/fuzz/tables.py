"""The tables that random queries read: few values, many NULLs, duplicates, some without a key or rows."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

Columns = dict[str, str]
"""Columns, or other SQL that may stand for one, and their kinds."""

TYPES: Final = {
    "int": "int",
    "big": "bigint",
    "num": "numeric(8,2)",
    "wide": "numeric",
    "real": "float8",
    "text": "text",
    "bool": "bool",
    "date": "date",
    "stamp": "timestamp",
    "ints": "int[]",
    "json": "jsonb",
    "code": "char(2)",
    "span": "interval",
}
"""The kinds of values, and their types."""

VALUES: Final = {
    "int": ("0", "1", "2", "3"),
    "big": ("1", "2", "9000000000"),
    "num": ("0.50", "1.25", "-3.10", "2"),
    # equal numbers that are written differently
    "wide": ("1.5", "1.50", "0.3333333333", "10"),
    # halves add up exactly in any order
    "real": ("0.5", "-1.5", "2"),
    "text": ("'a'", "'b'", "'A'", "''"),
    "bool": ("true", "false"),
    "date": ("date '2024-01-01'", "date '2024-02-29'", "date '2024-03-01'", "date 'infinity'"),
    "stamp": ("timestamp '2024-01-01 00:00'", "timestamp '2024-01-01 12:30'", "timestamp '2024-02-29'"),
    "ints": ("'{}'::int[]", "'{1}'::int[]", "'{1,1,2}'::int[]", "'{3,NULL}'::int[]"),
    # equal codes and equal spans that are written differently
    "code": ("'a'::char(2)", "'a '::char(2)", "'B'::char(2)", "''::char(2)"),
    "span": ("interval '1 day'", "interval '24 hours'", "interval '1 month'", "interval '-1 day'"),
    "json": ("'[]'::jsonb", "'[1,2]'::jsonb", "'[\"a\",null]'::jsonb"),
}
_NULLS = 0.25


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the application's."""

    name: str
    columns: Columns
    key: tuple[str, ...] = ()
    required: tuple[str, ...] = ()

    @property
    def declaration(self) -> str:
        parts = [self._column(name) for name in self.columns]
        if self.key:
            parts.append(f"primary key ({', '.join(self.key)})")
        return f"{self.name}({', '.join(parts)})"

    def _column(self, name: str) -> str:
        required = " not null" if name in self.required and name not in self.key else ""
        return f"{name} {TYPES[self.columns[name]]}{required}"

    def drawn(self, draw: Random, column: str) -> str:
        """A value for a column."""
        if column == "id":
            return str(draw.randrange(12))
        if draw.random() < _NULLS and column not in (*self.key, *self.required):
            return "null"
        return draw.choice(VALUES[self.columns[column]])

    def drawn_row(self, draw: Random) -> str:
        return f"({', '.join(self.drawn(draw, column) for column in self.columns)})"


def drawn_tables(draw: Random) -> tuple[Table, ...]:
    """The same columns every time; which of them are keys, and which may be NULL, varies."""
    has_keys = draw.random() < 0.8
    is_required = draw.random() < 0.5
    return (
        Table(
            "alpha",
            {"id": "int", "k": "int", "v": "num", "s": "text", "b": "bool"},
            key=("id",),
        ),
        Table(
            "beta",
            {"id": "int", "k": "int", "w": "big", "d": "date"},
            key=("id",) if has_keys else (),
            required=("k",) if is_required else (),
        ),
        Table("gamma", {"k": "int", "x": "int", "s": "text", "c": "code"}),
        Table("delta", {"k": "int", "g": "text", "p": "wide", "b": "bool", "t": "stamp", "i": "span"}),
        Table(
            "epsilon",
            {"k": "int", "l": "int", "f": "real", "n": "ints", "j": "json"},
            key=("k", "l") if has_keys else (),
        ),
        Table("zeta", {"x": "int", "y": "int"}, required=("x", "y") if is_required else ()),
    )


def drawn_rows(draw: Random, tables: tuple[Table, ...]) -> dict[str, tuple[str, ...]]:
    """The rows that the tables hold at first; now and then one is empty."""
    return {table.name: _rows(draw, table) for table in tables}


def _rows(draw: Random, table: Table) -> tuple[str, ...]:
    if draw.random() < 0.08:
        return ()
    rows: dict[str, str] = {}
    for number in range(draw.randint(3, 10)):
        row = table.drawn_row(draw)
        # what has no key holds duplicates
        identity = str(number)
        if table.key:
            identity = ", ".join(row[1:-1].split(", ")[: len(table.key)])
        rows.setdefault(identity, row)
    return tuple(rows.values())
