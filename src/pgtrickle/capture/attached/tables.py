"""The attached databases and their tables, as the catalog has them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pgtrickle.model.attached import AttachedDatabase, AttachedTable
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.stream_table import RelationId, StreamTableId
from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.rows import rows_as
from pgtrickle.postgres.statements import load


def attached_databases(connection: Connection) -> tuple[AttachedDatabase, ...]:
    """The attached databases, and those that are being detached."""
    result = connection.execute(
        "select alias, reference, reader::text, place, is_detached, cdc_mode, position::text"
        " from pgtrickle.pgt_attached_databases order by alias"
    )
    return rows_as(AttachedDatabase, result)


def attached_tables(connection: Connection, alias: str, *, locks: bool = False) -> tuple[AttachedTable, ...]:
    """The declared tables of an attached database; with `locks`, nobody else follows them meanwhile."""
    if locks:
        connection.execute(
            "select from pgtrickle.pgt_attached_tables where alias = %s order by table_id for no key update",
            (alias,),
        )
    result = connection.execute(load("pgtrickle.capture", "sql/attached_tables.sql"), {"alias": alias})
    return rows_as(_attached_table, result)


def aliases_of(connection: Connection, relations: Iterable[RelationId]) -> tuple[str, ...]:
    """The attached databases that have these tables."""
    rows = connection.execute(
        "select distinct alias from pgtrickle.pgt_attached_tables"
        " where source_relid = any (%s::oid[]) order by 1",
        (list(relations),),
    )
    return tuple(alias for (alias,) in rows)


def read_aliases(connection: Connection, tables: Iterable[StreamTableId]) -> frozenset[str]:
    """The attached databases that stream tables read."""
    rows = connection.execute(
        "select distinct t.alias from pgtrickle.pgt_dependencies d join pgtrickle.pgt_attached_tables t"
        " on t.source_relid = d.source_relid where d.pgt_id = any (%s)",
        (list(tables),),
    )
    return frozenset(alias for (alias,) in rows)


def _attached_table(
    *,
    number: int,
    schema: str,
    name: str,
    relation: int | None,
    is_stand_in: bool,
    is_read: bool,
    wanted: list[str],
    definition: dict[str, Any] | None,
    followed: list[str],
    frontier: str | None,
    position: str | None,
    last_error: str | None,
) -> AttachedTable:
    return AttachedTable(
        number,
        schema,
        name,
        None if relation is None else RelationId(relation),
        is_stand_in,
        is_read,
        tuple(wanted),
        definition,
        tuple(followed),
        None if frontier is None else Frontier.parse(frontier),
        position,
        last_error,
    )
