"""What a query reads: tables with their columns, keys and indexes, as PostgreSQL describes them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import RelationId


@dataclass(frozen=True, slots=True)
class PgType:
    """A type of PostgreSQL: `text` is what `format_type` prints, `base` the name without modifier.

    Where the type is a `domain`, all else describes the type below it: values are carried and kept by that,
    because a domain may refuse what is there for us only, such as the nulls of an outer join.
    The `delimiter` stands between the elements of its arrays.
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


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """One column of a source; `number` is its attribute number, which renaming does not change."""

    name: str
    number: int
    type: PgType
    is_nullable: bool


class SourceKind(Enum):
    """What a source is to us."""

    TABLE = "table"
    STREAM_TABLE = "stream_table"
    MATERIALIZED_VIEW = "materialized_view"
    FOREIGN_TABLE = "foreign_table"


@dataclass(frozen=True, slots=True)
class Source:
    """A table that a query reads.

    Where no trigger can tell of its changes it has a `copy` of ours, with which it is compared.
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
        """Where its rows are read."""
        return self.copy or self.name

    def column(self, name: str) -> SourceColumn:
        """The column of that name; KeyError if there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)
