"""Composes statements from quoted names and the SQL of our compiler."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pgtrickle.model.names import RelationName, quoted
from pgtrickle.postgres.connection import sql

STATE_SCHEMA = "pgtrickle_state"


def trusted_sql(text: str) -> sql.SQL:
    """SQL that our compiler wrote; a percent sign in it does not start a parameter."""
    return sql.SQL(text.replace("%", "%%"))


def identifier(name: str) -> sql.SQL:
    """A quoted name; a percent sign in it does not start a parameter."""
    return trusted_sql(quoted(name))


def relation(name: RelationName) -> sql.SQL:
    """The quoted schema and name of a relation."""
    return trusted_sql(name.sql)


def comma_list(parts: Iterable[sql.Composable]) -> sql.Composed:
    """The parts, separated by commas."""
    return sql.SQL(", ").join(parts)


def numbered_names(letter: str, count: int, alias: str | None = None) -> list[sql.SQL]:
    """Our own column names, `k1` to `kn`; inside our statements no other names can collide with them."""
    prefix = f"{alias}." if alias else ""
    return [trusted_sql(f"{prefix}{letter}{number}") for number in range(1, count + 1)]


def with_aliases(values: Iterable[sql.Composable], names: Iterable[sql.Composable]) -> list[sql.Composed]:
    """Each value as its alias."""
    return [sql.SQL("{} as {}").format(*pair) for pair in zip(values, names, strict=True)]


def same(left: Sequence[sql.Composable], right: Sequence[sql.Composable]) -> sql.Composable:
    """The condition that all pairs are equal; null equals null."""
    if not left:
        return sql.SQL("true")
    pairs = zip(left, right, strict=True)
    return sql.SQL(" and ").join(sql.SQL("{} is not distinct from {}").format(a, b) for a, b in pairs)


def image(values: Iterable[sql.Composable]) -> sql.Composed:
    """A record of any types, to be compared byte by byte with `*=` or `*<>`."""
    return sql.SQL("row({})::record").format(comma_list(values))
