"""Reads what reads what, and how the changes of each source are captured."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Final

from pgtrickle.commands.connections import open_installed
from pgtrickle.model.names import RelationName
from pgtrickle.model.records import Record
from pgtrickle.postgres.statements import load

_PACKAGE: Final = "pgtrickle.commands"


@dataclass(frozen=True, slots=True, repr=False)
class Dependency(Record):
    """A stream table and one relation that it reads; `kind` is table, stream_table, foreign_table or so."""

    stream_table: RelationName
    source: RelationName
    kind: str


@dataclass(frozen=True, slots=True, repr=False)
class SourceReader(Record):
    """A stream table that reads a source, and how much of the source's changes it does not show yet."""

    table: str
    pending_rows: int
    staleness_seconds: float | None


@dataclass(frozen=True, slots=True, repr=False)
class CapturedSource(Record):
    """A source, how its changes are captured, and who has not read them yet.

    `triggers_ok` is None for a source that is compared with a copy and has no triggers.
    """

    source: str
    kind: str
    cdc_mode: str
    pending_rows: int
    buffer_bytes: int
    readers: tuple[SourceReader, ...]
    triggers_ok: bool | None
    gated: bool


@dataclass(frozen=True, slots=True, repr=False)
class TableReader(Record):
    """A view or materialized view that reads a stream table."""

    stream_table: RelationName
    reader: RelationName
    kind: str


def table_readers(dsn: str) -> list[TableReader]:
    """The views that read stream tables themselves, and not through other views."""
    with open_installed(dsn) as connection:
        rows = connection.execute(load(_PACKAGE, "sql/table_readers.sql"))
        return [
            TableReader(RelationName(schema, name), RelationName(reader_schema, reader), kind)
            for schema, name, reader_schema, reader, kind in rows
        ]


def dependencies(dsn: str) -> list[Dependency]:
    """Every stream table with each relation that it reads, directly or through views."""
    with open_installed(dsn) as connection:
        rows = connection.execute(load(_PACKAGE, "sql/graph.sql"))
        return [
            Dependency(RelationName(schema, name), RelationName(source_schema, source), kind)
            for schema, name, source_schema, source, kind in rows
        ]


def captured_sources(dsn: str) -> list[CapturedSource]:
    """Every source, ordered by name."""
    with open_installed(dsn) as connection:
        rows = connection.execute(load(_PACKAGE, "sql/capture.sql"), {}).fetchall()
    found = []
    for source, group in groupby(rows, key=lambda row: str(row[0])):
        read = list(group)
        _, kind, mode, _, size, _, _, are_ok, is_gated = read[0]
        readers = tuple(SourceReader(row[5], row[3], row[6]) for row in read)
        pending = max(reader.pending_rows for reader in readers)
        found.append(CapturedSource(source, kind, mode, pending, size, readers, are_ok, is_gated))
    return found
