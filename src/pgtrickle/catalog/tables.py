"""Reads stream tables and their dependencies from the catalog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pgtrickle.model.auxiliary import AuxiliaryUse
from pgtrickle.model.dependency import DependencyKind
from pgtrickle.model.errors import UnknownStreamTable
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import (
    ChangeFeed,
    RefreshMode,
    RelationId,
    Status,
    StreamTable,
    StreamTableId,
)
from pgtrickle.postgres.connection import Connection, DatabaseError, login_search_path, to_refusal
from pgtrickle.postgres.rows import rows_as
from pgtrickle.postgres.statements import load


@dataclass(frozen=True, slots=True)
class Dependency:
    """An object that a stream table relies on; for a function, `relation` is its OID."""

    kind: DependencyKind
    relation: RelationId
    name: RelationName
    columns: tuple[str, ...]

    @property
    def is_captured(self) -> bool:
        """Whether changes of its rows are captured."""
        return self.kind not in (DependencyKind.VIEW, DependencyKind.FUNCTION)

    @property
    def is_view(self) -> bool:
        """Whether it is a view; its own sources are dependencies too."""
        return self.kind is DependencyKind.VIEW


def kept_changes(table: int) -> RelationName:
    """The table that holds the kept changes of a stream table."""
    return RelationName("pgtrickle_state", f"kept_changes_{table}")


def stream_tables(connection: Connection) -> tuple[StreamTable, ...]:
    """All stream tables, oldest first."""
    return _load(connection, None)


def some_stream_tables(connection: Connection, tables: Sequence[StreamTableId]) -> tuple[StreamTable, ...]:
    """The stream tables with these ids that exist, oldest first."""
    return _load(connection, list(tables))


def stream_table(connection: Connection, table: StreamTableId) -> StreamTable:
    """The stream table with that id."""
    found = _load(connection, [table])
    if not found:
        raise UnknownStreamTable(
            f"there is no stream table {table}", hint="it may have been dropped in the meantime"
        )
    return found[0]


def find(connection: Connection, name: str) -> StreamTable:
    """The stream table of that name: `name` along the search_path, or `schema.name`, quoted as in SQL."""
    return stream_table(connection, find_id(connection, name))


def find_id(connection: Connection, name: str) -> StreamTableId:
    """The id of the stream table of that name. Every role may ask."""
    try:
        with login_search_path(connection):
            row = connection.execute("select pgtrickle_internal.find_stream_table(%s)", (name,)).fetchone()
    except DatabaseError as error:
        raise to_refusal(error) from error
    if row is None or row[0] is None:
        raise UnknownStreamTable(
            f"there is no stream table {name}",
            hint="if its schema is not in the search_path, write schema.name",
        )
    return StreamTableId(row[0])


def dependencies(connection: Connection, table: StreamTableId) -> tuple[Dependency, ...]:
    """What a stream table relies on."""
    result = connection.execute(
        "select source_type as kind, source_relid::bigint as relation, source_schema as schema,"
        " source_name as name, columns_used as columns"
        " from pgtrickle.pgt_dependencies where pgt_id = %s order by source_type, source_relid",
        (table,),
    )
    return rows_as(_dependency, result)


def _load(connection: Connection, ids: Sequence[StreamTableId] | None) -> tuple[StreamTable, ...]:
    statement = load("pgtrickle.catalog", "sql/queries/stream_tables.sql")
    return rows_as(_stream_table, connection.execute(statement, {"ids": ids}))


def _dependency(*, kind: str, relation: int, schema: str, name: str, columns: list[str]) -> Dependency:
    return Dependency(DependencyKind(kind), RelationId(relation), RelationName(schema, name), tuple(columns))


def _stream_table(
    *,
    schema: str,
    name: str,
    mode: str,
    effective_mode: str | None,
    status: str,
    frontier: str | None,
    upstream_frontier: str | None,
    settings: Mapping[str, str],
    match_columns: list[str],
    auxiliary: str,
    feed: Mapping[str, Any] | None,
    **others: Any,
) -> StreamTable:
    return StreamTable(
        name=RelationName(schema, name),
        mode=RefreshMode(mode),
        effective_mode=RefreshMode(effective_mode) if effective_mode else None,
        status=Status(status),
        frontier=Frontier.parse(frontier) if frontier else None,
        upstream_frontier=Frontier.parse(upstream_frontier) if upstream_frontier else None,
        settings=tuple(sorted(settings.items())),
        match_columns=tuple(match_columns),
        auxiliary=AuxiliaryUse(auxiliary),
        feed=_feed(others["id"], feed) if feed else None,
        **others,
    )


def _feed(table: int, found: Mapping[str, Any]) -> ChangeFeed:
    return ChangeFeed(
        kept_changes(table),
        tuple(found["columns"]),
        found["most_rows"],
        bool(found["fits"]),
        found["reset_reason"],
    )
