"""Creates several stream tables at once, all or none of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pgtrickle.commands.connections import open_as_author
from pgtrickle.model.records import Record
from pgtrickle.model.stream_table import StreamTableId
from pgtrickle.postgres.connection import check_writable

TableDefinition = Mapping[str, str | bool | None]
"""The name, the query and any options of a stream table, by the names that they have in SQL."""


@dataclass(frozen=True, slots=True, repr=False)
class CreatedTable(Record):
    """A stream table that was created, under its name with the schema."""

    table_columns: ClassVar = ("name", "pgt_id")

    name: str
    pgt_id: StreamTableId


def bulk_create(dsn: str, definitions: Sequence[TableDefinition]) -> list[CreatedTable]:
    """Create stream tables that may read one another, in any order; raise if one cannot be created."""
    with open_as_author(dsn) as connection:
        check_writable(connection)
        row = connection.execute(
            "select pgtrickle.bulk_create(%s::jsonb)", (json.dumps([dict(one) for one in definitions]),)
        ).fetchone()
        assert row is not None
        return [CreatedTable(created["name"], StreamTableId(created["pgt_id"])) for created in row[0]]
