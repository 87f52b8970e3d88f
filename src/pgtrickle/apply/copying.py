"""Rows that are too many for parameters of a statement, in temporary tables of the transaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import pyarrow as pa

from pgtrickle.apply.composing import identifier, listed, relation, trusted
from pgtrickle.apply.rows import ArrayRows, CarriedColumn, CopiedRows, Rows
from pgtrickle.model.names import RelationName
from pgtrickle.postgres.arrow import write_batches
from pgtrickle.postgres.connection import Connection, sql

MANY_ROWS: Final = 20_000
MANY_BYTES: Final = 4 << 20
"""More than this is copied: as parameters, rows take ten times the memory."""


@contextmanager
def as_relation(
    connection: Connection, name: str, columns: Sequence[CarriedColumn], rows: pa.Table
) -> Iterator[Rows]:
    """The rows as parameters if they are few, else in a temporary table, which is gone afterwards."""
    if rows.num_rows <= MANY_ROWS and rows.nbytes <= MANY_BYTES:
        yield ArrayRows(rows)
        return
    with temporary(connection, name, columns) as copied:
        copy_onto(connection, copied, columns, rows)
        yield copied


def copy_onto(
    connection: Connection, copied: CopiedRows, columns: Sequence[CarriedColumn], rows: pa.Table
) -> None:
    """Add rows to a temporary table."""
    names = [column.name for column in columns]
    batches = rows.select(names).to_batches(max_chunksize=MANY_ROWS)
    write_batches(connection, relation(copied.table), names, batches)


@contextmanager
def temporary(connection: Connection, name: str, columns: Sequence[CarriedColumn]) -> Iterator[CopiedRows]:
    """An empty temporary table with these columns, which is gone afterwards."""
    table = RelationName("pg_temp", name)
    types = listed(
        sql.SQL("{} {}").format(identifier(column.name), trusted(column.sql_type)) for column in columns
    )
    create = sql.SQL("create temporary table {} ({}) on commit drop")
    connection.execute(create.format(relation(table), types), {})
    yield CopiedRows(table)
    # a failure undoes it with everything else
    connection.execute(sql.SQL("drop table {}").format(relation(table)), {})
