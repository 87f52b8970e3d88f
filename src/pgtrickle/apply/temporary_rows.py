"""Puts rows that are too many for the parameters of a statement into temporary tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import pyarrow as pa

from pgtrickle.apply.compose import comma_list, identifier, relation, trusted_sql
from pgtrickle.apply.result_rows import ArrayRows, CarriedColumn, CopiedRows, Rows
from pgtrickle.model.names import RelationName
from pgtrickle.postgres.arrow import write_batches
from pgtrickle.postgres.connection import Connection, sql

MANY_ROWS: Final = 20_000
MANY_BYTES: Final = 4 << 20
"""Above these limits rows are copied: as parameters they take ten times the memory."""


@contextmanager
def as_relation(
    connection: Connection, name: str, columns: Sequence[CarriedColumn], rows: pa.Table
) -> Iterator[Rows]:
    """The rows as parameters if they are few, else in a temporary table that is dropped at the end."""
    few = few_rows(rows)
    if few is not None:
        yield few
        return
    with temporary_table(connection, name, columns) as copied:
        copy_onto(connection, copied, columns, rows)
        yield copied


def few_rows(rows: pa.Table) -> ArrayRows | None:
    """The rows as parameters; None if they are too many."""
    return ArrayRows(rows) if rows.num_rows <= MANY_ROWS and rows.nbytes <= MANY_BYTES else None


def copy_onto(
    connection: Connection, copied: CopiedRows, columns: Sequence[CarriedColumn], rows: pa.Table
) -> None:
    """Copy rows into a temporary table."""
    names = [column.name for column in columns]
    batches = rows.select(names).to_batches(max_chunksize=MANY_ROWS)
    write_batches(connection, relation(copied.table), names, batches)


@contextmanager
def temporary_table(
    connection: Connection, name: str, columns: Sequence[CarriedColumn]
) -> Iterator[CopiedRows]:
    """An empty temporary table with these columns, dropped at the end."""
    table = RelationName("pg_temp", name)
    types = comma_list(
        sql.SQL("{} {}").format(identifier(column.name), trusted_sql(column.sql_type)) for column in columns
    )
    create = sql.SQL("create temporary table {} ({}) on commit drop")
    connection.execute(create.format(relation(table), types), {})
    yield CopiedRows(table)
    # after a failure the rollback drops it
    connection.execute(sql.SQL("drop table {}").format(relation(table)), {})
