"""Reads everything about one stream table: its columns, options, sources and readers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pgtrickle.commands.connections import check_known, open_installed
from pgtrickle.commands.overview import TableOverview, read_tables
from pgtrickle.model.records import Record
from pgtrickle.postgres.statements import load
from pgtrickle.postgres.text_rows import ResultColumn


@dataclass(frozen=True, slots=True, repr=False)
class DetailSource(Record):
    """A relation or a function that a stream table reads."""

    name: str
    kind: str
    cdc_mode: str | None
    columns_used: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, repr=False)
class TableDetail(Record):
    """One stream table. `readers` are the stream tables that read it."""

    overview: TableOverview
    columns: tuple[ResultColumn, ...]
    options: dict[str, Any]
    sources: tuple[DetailSource, ...]
    readers: tuple[str, ...]


def table_detail(dsn: str, name: str) -> TableDetail:
    """Everything about one stream table; raise if there is none of that name."""
    with open_installed(dsn) as connection:
        known = check_known(connection, name)
        overview = read_tables(connection, known)[0]
        row = connection.execute(
            load("pgtrickle.commands", "sql/table_detail.sql"), {"name": known}
        ).fetchone()
        assert row is not None
        columns, options, readers = row
        sources = connection.execute(
            "select source_table, source_type, cdc_mode, columns_used from pgtrickle.list_sources(%s)",
            (known,),
        ).fetchall()
    return TableDetail(
        overview,
        tuple(ResultColumn(*column) for column in columns),
        options,
        tuple(
            DetailSource(source, kind, mode, None if used is None else tuple(used))
            for source, kind, mode, used in sources
        ),
        tuple(readers),
    )
