"""Composing statements from quoted names and the compiler's own SQL texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pgtrickle.model.names import RelationName, quoted
from pgtrickle.postgres.connection import sql

STATE_SCHEMA = "pgtrickle_state"


def trusted(text: str) -> sql.SQL:
    """SQL that our compiler wrote; its percent signs are no parameters."""
    return sql.SQL(text.replace("%", "%%"))


def identifier(name: str) -> sql.SQL:
    """A quoted name, safe from being read as a parameter when it holds a percent sign."""
    return trusted(quoted(name))


def relation(name: RelationName) -> sql.SQL:
    """A relation by its schema and name."""
    return trusted(name.sql)


def listed(parts: Iterable[sql.Composable]) -> sql.Composed:
    """The parts, with commas between them."""
    return sql.SQL(", ").join(parts)


def numbered(letter: str, count: int, alias: str | None = None) -> list[sql.SQL]:
    """Our own column names, `k1` to `kn`: they cannot collide with a user's, which we never use inside."""
    prefix = f"{alias}." if alias else ""
    return [trusted(f"{prefix}{letter}{number}") for number in range(1, count + 1)]


def aliased(values: Iterable[sql.Composable], names: Iterable[sql.Composable]) -> list[sql.Composed]:
    """Each value with the name it goes by."""
    return [sql.SQL("{} as {}").format(*pair) for pair in zip(values, names, strict=True)]


def same(left: Sequence[sql.Composable], right: Sequence[sql.Composable]) -> sql.Composable:
    """All pairs are equal, where null equals null."""
    if not left:
        return sql.SQL("true")
    pairs = zip(left, right, strict=True)
    return sql.SQL(" and ").join(sql.SQL("{} is not distinct from {}").format(a, b) for a, b in pairs)


def image(values: Iterable[sql.Composable]) -> sql.Composed:
    """A record to be compared byte by byte with `*=` or `*<>`, whatever types it has."""
    return sql.SQL("row({})::record").format(listed(values))
