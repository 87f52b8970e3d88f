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


def column_definition(name: str, pg_type: str, collation: str | None = None) -> sql.Composed:
    """The definition of a column in one of our tables."""
    declared = f"{pg_type} collate {collation}" if collation else pg_type
    return sql.SQL("{} {}").format(identifier(name), trusted_sql(declared))


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


def same(
    left: Sequence[sql.Composable], right: Sequence[sql.Composable], types: Sequence[str]
) -> sql.Composable:
    """The condition that all pairs of values of these types are equal; null equals null."""
    if not left:
        return sql.SQL("true")
    triples = zip(left, right, types, strict=True)
    return sql.SQL(" and ").join(same_value(a, b, pg_type) for a, b, pg_type in triples)


def same_value(left: sql.Composable, right: sql.Composable, pg_type: str) -> sql.Composable:
    """The condition that two values of a type are equal; null equals null."""
    text = "row({})::record = row({})::record" if is_foreign(pg_type) else "{} is not distinct from {}"
    return sql.SQL(text).format(left, right)


def is_foreign(pg_type: str) -> bool:
    """Whether a type is outside of pg_catalog, so that its name is printed with its schema.

    Its operators are not found by name, or others are: `=` compares values of citext as text. A comparison
    of records uses the default operators of the types.
    """
    return "." in pg_type


def image(values: Iterable[sql.Composable]) -> sql.Composed:
    """A record of any types, to be compared byte by byte with `*=` or `*<>`."""
    return sql.SQL("row({})::record").format(comma_list(values))
