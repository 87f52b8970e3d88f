"""Copies rows from one connection to another in blocks, without parsing them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from psycopg import ClientCursor, Connection, sql


def copy_across(
    source: Connection[Any],
    query: sql.Composed,
    parameters: Mapping[str, object],
    target: Connection[Any],
    table: sql.Composable,
    columns: Sequence[str],
) -> None:
    """Append the rows of a query on one connection to these columns of a table on another."""
    # COPY takes no parameters, so they are inserted into its text
    give: Any = (
        f"copy ({ClientCursor(source).mogrify(query, parameters)}) to stdout (format csv, encoding 'UTF8')"
    )
    take = sql.SQL("copy {} ({}) from stdin (format csv, encoding 'UTF8')").format(
        table, sql.SQL(", ").join(map(sql.Identifier, columns))
    )
    with (
        source.cursor() as giving,
        target.cursor() as taking,
        giving.copy(give) as out,
        taking.copy(take) as into,
    ):
        for block in out:
            into.write(block)
