"""The sources of a query: tables with their columns, keys and indexes, as PostgreSQL describes them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import RelationId


@dataclass(frozen=True, slots=True)
class PgType:
    """A PostgreSQL type. `text` is the output of `format_type`, `base` the name without modifier.

    For a `domain`, the other fields describe its underlying type. Values are carried and stored as that type,
    because a domain may reject intermediate values, such as the nulls of an outer join.
    `delimiter` separates the elements of its arrays. `equals` is its equality operator, with its schema
    unless that is pg_catalog. `collation` is None for the default one.
    """

    text: str
    base: str
    kind: str
    category: str
    precision: int | None = None
    scale: int | None = None
    deterministic: bool = True
    c_collated: bool = False
    domain: str | None = None
    has_equality: bool = True
    delimiter: str = ","
    equals: str = "="
    collation: str | None = None


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """One column of a source. `number` is its attribute number, which a rename does not change."""

    name: str
    number: int
    type: PgType
    is_nullable: bool


class SourceKind(Enum):
    """The kind of a source."""

    TABLE = "table"
    STREAM_TABLE = "stream_table"
    MATERIALIZED_VIEW = "materialized_view"
    FOREIGN_TABLE = "foreign_table"
    ATTACHED_TABLE = "attached_table"
    """A table of another database."""
    AUXILIARY = "auxiliary"
    """An inner result of the same query, which is kept beside the stream table."""


STORED: Final = RelationId(0)
"""Stands for the stream table itself, whose name may change after its query was compiled."""


@dataclass(frozen=True, slots=True)
class Source:
    """A table that a query reads.

    If triggers cannot capture its changes, it is compared with a `copy` that pgtrickle keeps.
    """

    relation: RelationId
    name: RelationName
    kind: SourceKind
    columns: tuple[SourceColumn, ...]
    keys: tuple[tuple[str, ...], ...] = ()
    indexes: tuple[tuple[str, ...], ...] = ()
    copy: RelationName | None = None

    @property
    def table(self) -> RelationName:
        """The relation from which its rows are read."""
        return self.copy or self.name

    def column(self, name: str) -> SourceColumn:
        """The column of that name; KeyError if there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)
