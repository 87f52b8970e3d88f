"""The tables of an auxiliary result: its rows, the indexes by which they are found, and its last change."""

from __future__ import annotations

from collections.abc import Sequence

from pgtrickle.apply.compose import column_definition, comma_list, identifier, relation
from pgtrickle.model.auxiliary import moved_table
from pgtrickle.model.source import Source
from pgtrickle.postgres.connection import Connection, sql


def create_auxiliary(connection: Connection, source: Source) -> None:
    """Create the tables of an auxiliary result, empty."""
    table, moved = relation(source.table), relation(moved_table(source.relation))
    connection.execute(
        sql.SQL("create table {} ({}) with (fillfactor = 80)").format(
            table,
            comma_list(column_definition(c.name, c.type.text, c.type.collation) for c in source.columns),
        ),
        {},
    )
    columns = (column_definition(f"c{c.number}", c.type.text, c.type.collation) for c in source.columns)
    connection.execute(
        sql.SQL("create unlogged table {} (weight bigint, {})").format(moved, comma_list(columns)), {}
    )


def index_auxiliary(connection: Connection, source: Source, indexes: Sequence[tuple[str, ...]]) -> None:
    """Create the indexes of an auxiliary result, after it was filled: that costs less than to fill them."""
    connection.execute("select pgtrickle_internal.create_row_index(%s::regclass)", (source.table.sql,))
    for names in indexes:
        connection.execute(
            sql.SQL("create index on {} ({})").format(
                relation(source.table), comma_list(map(identifier, names))
            ),
            {},
        )


def drop_auxiliaries(connection: Connection, stream_table: int) -> None:
    """Drop the tables of all auxiliary results of a stream table, and their states."""
    connection.execute("select pgtrickle_internal.drop_auxiliaries(%s)", (stream_table,))


def forget_moves(connection: Connection, sources: Sequence[Source]) -> None:
    """Forget what earlier refreshes did to auxiliary results."""
    steps = comma_list(
        sql.SQL("{} as (delete from {})").format(identifier(f"d{n}"), relation(moved_table(source.relation)))
        for n, source in enumerate(sources)
    )
    connection.execute(sql.SQL("with {} select").format(steps), {})


def analyze_auxiliary(connection: Connection, source: Source) -> None:
    """Collect statistics of an auxiliary result that was just filled, for the planner."""
    connection.execute(sql.SQL("analyze {}").format(relation(source.table)), {})
