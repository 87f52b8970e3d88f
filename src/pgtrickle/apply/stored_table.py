"""A stream table to write to: its columns, how they are matched, and what they are declared as."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgtrickle.apply.compose import (
    comma_list,
    identifier,
    numbered_names,
    relation,
    trusted_sql,
    with_aliases,
)
from pgtrickle.apply.finals import cast_value
from pgtrickle.apply.recording import MovedRows, Recording
from pgtrickle.model.names import RelationName
from pgtrickle.plan.program import Output
from pgtrickle.postgres.connection import sql

_VALUE_TEXT = "pgtrickle_internal.value_text("

# uses the input function of the type: a cast from text may be user-defined
_READ = (
    "(select j.v[1] from json_to_record(json_build_object('v', textin(array_out(array[{}])))) as j(v {}[]))"
)
_READ_ARRAY = "(select j.v from json_to_record(json_build_object('v', {})) as j(v {}))"

_ALIKE_WHEN_EQUAL = frozenset(
    {"boolean", "smallint", "integer", "bigint", "text", "date", "uuid", "bytea"}
    | {"timestamp without time zone", "timestamp with time zone"}
)


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A column of a stream table; `match` is the SQL by which its index hashes and compares it.

    That is the name itself, or the text of the value if the type cannot be hashed. `domain` is the declared
    type of the column, if it is a domain over `pg_type`. `collation` is that of a column of a state table,
    unless it has the default one.
    """

    name: str
    pg_type: str
    match: str
    domain: str | None = None
    collation: str | None = None

    @property
    def is_matched_by_text(self) -> bool:
        return self.match.endswith(")::text") or self.match.startswith(_VALUE_TEXT)

    @property
    def matched_type(self) -> str:
        """The type of the form that it is matched by."""
        return "text" if self.is_matched_by_text else self.pg_type

    @property
    def is_alike_when_equal(self) -> bool:
        """Whether equal values always look the same; decimals of a fixed scale do."""
        is_fixed = self.pg_type.startswith("numeric(")
        return is_fixed or self.is_matched_by_text or self.pg_type in _ALIKE_WHEN_EQUAL

    def value(self, matched: sql.Composable) -> sql.Composable:
        """The value of the column, from the form that it is matched by."""
        if not self.is_matched_by_text:
            return matched
        if self.pg_type == "xml":
            return sql.SQL("xmlparse(content {})").format(matched)
        if not self.match.startswith(_VALUE_TEXT):
            return cast_value(matched, self.pg_type)
        return sql.SQL(_READ_ARRAY if self.pg_type.endswith("[]") else _READ).format(
            matched, trusted_sql(self.pg_type)
        )


@dataclass(frozen=True, slots=True)
class StoredTable:
    """A stream table to write to: its columns, and the names of those that form a key.

    If there is a `recording`, what is written is recorded there.
    """

    name: RelationName
    columns: tuple[StoredColumn, ...]
    key: tuple[str, ...] | None
    recording: Recording | MovedRows | None = None

    @property
    def names(self) -> list[sql.SQL]:
        return [identifier(column.name) for column in self.columns]

    @property
    def matches(self) -> list[sql.SQL]:
        return [trusted_sql(column.match) for column in self.columns]

    @property
    def compared(self) -> list[sql.Composable]:
        """The matches without domains: operators of enums, arrays and ranges do not take domains."""
        pairs = zip(self.columns, self.matches, strict=True)
        return [
            cast_value(match, column.pg_type) if column.domain and not column.is_matched_by_text else match
            for column, match in pairs
        ]

    @property
    def rows(self) -> sql.Composed:
        """All its rows, with weight −1."""
        return sql.SQL("select {}, -1 as weight from only {}").format(
            comma_list(with_aliases(self.names, numbered_names("o", len(self.columns)))), relation(self.name)
        )

    def values(self, letter: str, alias: str) -> list[sql.Composable]:
        """The values of the columns, from the forms that a relation matches them by."""
        matched = numbered_names(letter, len(self.columns), alias)
        return [
            self._declared_value(column, column.value(part))
            for column, part in zip(self.columns, matched, strict=True)
        ]

    def new_values(self, letter: str, alias: str) -> list[sql.Composable]:
        """The values of the columns, from a relation that has them in their own types."""
        given = numbered_names(letter, len(self.columns), alias)
        return [self._declared_value(column, part) for column, part in zip(self.columns, given, strict=True)]

    def _declared_value(self, column: StoredColumn, value: sql.Composable) -> sql.Composable:
        """The value as the declared type of the column.

        A query can return null for a domain that is NOT NULL: an outer join does. PostgreSQL stores such a
        null (as in CREATE TABLE AS) but refuses it in a cast, unless the null already has the type.
        """
        if column.domain is None:
            return value
        return sql.SQL(
            "case when {value} is not distinct from null"
            " then (null::{table}).{name} else {value}::{domain} end"
        ).format(
            value=sql.SQL("({})").format(value),
            table=relation(self.name),
            name=identifier(column.name),
            domain=trusted_sql(column.domain),
        )


def stored_table(
    table: RelationName,
    matches: Sequence[str],
    outputs: Sequence[Output],
    key: tuple[str, ...] | None,
    recording: Recording | MovedRows | None = None,
) -> StoredTable:
    """A stream table to write to, with the SQL by which its index hashes each column."""
    pairs = zip(outputs, matches, strict=True)
    columns = (StoredColumn(output.name, output.pg_type, match, output.domain) for output, match in pairs)
    return StoredTable(table, tuple(columns), key, recording)
