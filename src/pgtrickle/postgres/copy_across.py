"""Copies rows from one connection to another in blocks, without parsing them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from psycopg import ClientCursor, Connection, sql


def copy_across(
    source: Connection[Any],
    query: sql.Composed,
    parameters: Mapping[str, object],
    target: Connection[Any],
    table: sql.Composable,
    columns: Sequence[str],
) -> int:
    """Append the rows of a query on one connection to columns of a table on another; return their bytes."""
    return copy_blocks(copy_out(source, query, parameters), target, table, columns)


def copy_out(
    source: Connection[Any], query: sql.Composed, parameters: Mapping[str, object] = MappingProxyType({})
) -> Iterator[bytes]:
    """The rows of a query, in blocks for `copy_blocks`: one for each row."""
    # COPY takes no parameters, so they are inserted into its text
    give: Any = (
        f"copy ({ClientCursor(source).mogrify(query, parameters)}) to stdout (format csv, encoding 'UTF8')"
    )
    with source.cursor() as giving, giving.copy(give) as out:
        for block in out:
            yield bytes(block)


def copy_blocks(
    blocks: Iterable[bytes], target: Connection[Any], table: sql.Composable, columns: Sequence[str]
) -> int:
    """Append blocks of rows to these columns of a table; return how many bytes they were."""
    take = sql.SQL("copy {} ({}) from stdin (format csv, encoding 'UTF8')").format(
        table, sql.SQL(", ").join(map(sql.Identifier, columns))
    )
    with target.cursor() as taking, taking.copy(take) as into:
        size = 0
        for block in blocks:
            into.write(block)
            size += len(block)
    return size
