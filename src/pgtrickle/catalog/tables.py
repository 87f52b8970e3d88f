"""Typed queries over the catalog: stream tables, and what they depend on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pgtrickle.model.dependency import DependencyKind
from pgtrickle.model.errors import UnknownStreamTable
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import RefreshMode, RelationId, Status, StreamTable, StreamTableId
from pgtrickle.postgres.connection import Connection, DatabaseError, along_login_path, refused
from pgtrickle.postgres.statements import load


@dataclass(frozen=True, slots=True)
class Dependency:
    """One thing a stream table relies on; `relation` is the id of a function where it is one."""

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
        """Whether it is a view, whose own sources are dependencies as well."""
        return self.kind is DependencyKind.VIEW


def stream_tables(connection: Connection) -> tuple[StreamTable, ...]:
    """All stream tables, oldest first."""
    return _load(connection, None)


def some_stream_tables(connection: Connection, tables: Sequence[StreamTableId]) -> tuple[StreamTable, ...]:
    """Those of the stream tables that there are, oldest first."""
    return _load(connection, list(tables))


def stream_table(connection: Connection, table: StreamTableId) -> StreamTable:
    """The stream table with that id."""
    found = _load(connection, [table])
    if not found:
        raise UnknownStreamTable(f"there is no stream table {table}", hint="it may have been dropped")
    return found[0]


def find(connection: Connection, name: str) -> StreamTable:
    """The stream table of that name: `name` along the search_path, or `schema.name`, quoted as in SQL."""
    try:
        with along_login_path(connection):
            row = connection.execute("select pgtrickle_internal.find_stream_table(%s)", (name,)).fetchone()
    except DatabaseError as error:
        raise refused(error) from error
    if row is None or row[0] is None:
        raise UnknownStreamTable(
            f"there is no stream table {name}",
            hint="a bare name is looked up along the search_path; schema.name always works",
        )
    return stream_table(connection, StreamTableId(row[0]))


def dependencies(connection: Connection, table: StreamTableId) -> tuple[Dependency, ...]:
    """What a stream table relies on."""
    rows = connection.execute(
        "select source_type, source_relid::bigint, source_schema, source_name, columns_used"
        " from pgtrickle.pgt_dependencies where pgt_id = %s order by source_type, source_relid",
        (table,),
    )
    return tuple(
        Dependency(DependencyKind(kind), RelationId(relid), RelationName(schema, name), tuple(columns))
        for kind, relid, schema, name, columns in rows
    )


def _load(connection: Connection, ids: Sequence[StreamTableId] | None) -> tuple[StreamTable, ...]:
    rows = connection.execute(load("pgtrickle.catalog", "sql/queries/stream_tables.sql"), {"ids": ids})
    return tuple(from_row(row) for row in rows)


def from_row(row: Sequence[Any]) -> StreamTable:
    """A row of `stream_tables.sql` as the value it describes."""
    (number, relid, schema, name, query, schedule, mode, effective, reason, status, *rest) = row
    (is_populated, frontier, upstream, data_timestamp, last_refresh, errors, error, reinit, *last) = rest
    settings, match_columns, is_pooler_compatible, follows_clock, *last = last
    cache_generation, created_at, is_atomic, waits_for, ground_generation, ground_error, *last = last
    refresh_timeout, repairs_itself = last
    return StreamTable(
        id=StreamTableId(number),
        relation=RelationId(relid),
        name=RelationName(schema, name),
        query=query,
        schedule=schedule,
        mode=RefreshMode(mode),
        effective_mode=RefreshMode(effective) if effective else None,
        downgrade_reason=reason,
        status=Status(status),
        is_populated=is_populated,
        frontier=Frontier.parse(frontier) if frontier else None,
        upstream_frontier=Frontier.parse(upstream) if upstream else None,
        data_timestamp=data_timestamp,
        last_refresh_at=last_refresh,
        consecutive_errors=errors,
        last_error=error,
        reinit_reason=reinit,
        settings=tuple(sorted(settings.items())),
        match_columns=tuple(match_columns),
        is_pooler_compatible=is_pooler_compatible,
        follows_clock=follows_clock,
        cache_generation=cache_generation,
        created_at=created_at,
        is_atomic=is_atomic,
        waits_for=waits_for,
        ground_generation=ground_generation,
        ground_error=ground_error,
        refresh_timeout=refresh_timeout,
        repairs_itself=repairs_itself,
    )
