"""Reads written by hand, as the compiler would write them."""

from __future__ import annotations

import pyarrow as pa

from pgtrickle.model.carrier import Field
from pgtrickle.model.names import RelationName
from pgtrickle.model.source import PgType, Source, SourceColumn, SourceKind
from pgtrickle.model.stream_table import RelationId
from pgtrickle.plan.carriers import carrier_of
from pgtrickle.plan.reads import KeyColumns, Lookup, Read, ReadKind

KEYS = "keys"
"""The read whose rows are the keys of a lookup."""


def pg_type(text: str) -> PgType:
    """A PostgreSQL type by its name."""
    return PgType(text, text.partition("(")[0], kind="b", category="U")


def field(name: str, type_name: str) -> Field:
    """A field of that type, carried as the compiler would let it."""
    return Field(name, carrier_of(pg_type(type_name)))


def table_source(relation: int, **columns: str) -> Source:
    """A table of the schema `public`, described by its columns and their types."""
    described = (
        SourceColumn(name, number, pg_type(text), is_nullable=True)
        for number, (name, text) in enumerate(columns.items(), 1)
    )
    return Source(RelationId(relation), RelationName("public", "t"), SourceKind.TABLE, tuple(described))


def rows_read(source: Source, *names: str, lookups: tuple[Lookup, ...] = ()) -> Read:
    """A read of these columns of a source that has not changed."""
    return _read(source, ReadKind.ROWS, names, lookups=lookups)


def changes_read(source: Source, *names: str, condition: str | None = None) -> Read:
    """A read of the window of a source."""
    return _read(source, ReadKind.CHANGES, names, condition=condition)


def _read(
    source: Source,
    kind: ReadKind,
    names: tuple[str, ...],
    *,
    lookups: tuple[Lookup, ...] = (),
    condition: str | None = None,
) -> Read:
    return Read(
        name="read",
        kind=kind,
        source=source,
        query=None,
        fields=tuple(Field(name, carrier_of(source.column(name).type)) for name in names),
        expressions=tuple(f't."{name}"' for name in names),
        uses=tuple(column.name for column in source.columns),
        condition=condition,
        lookups=lookups,
    )


def lookup(*keys: tuple[str, str], is_null_safe: bool = False, provider: str = KEYS) -> Lookup:
    """Finds rows by columns, each given with its type, whose keys have the same names."""
    names = tuple(name for name, _ in keys)
    return Lookup(
        columns=tuple(f't."{name}"' for name in names),
        keys=tuple(field(*key) for key in keys),
        providers=(KeyColumns(provider, names),),
        is_null_safe=is_null_safe,
    )


def rows_of(table: pa.Table) -> list[tuple[object, ...]]:
    """The rows in a fixed order."""
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)
