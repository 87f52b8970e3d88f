"""Lists the materialized views of a database, which `adopt` could turn into stream tables."""

from __future__ import annotations

from dataclasses import dataclass

from pgtrickle.commands.connections import open_installed
from pgtrickle.model.names import RelationName
from pgtrickle.model.records import Record
from pgtrickle.postgres.statements import load


@dataclass(frozen=True, slots=True, repr=False)
class MaterializedView(Record):
    """A materialized view. `rows` is an estimate; `is_own` says whether the login role owns it."""

    name: RelationName
    owner: str
    is_populated: bool
    rows: int
    bytes: int
    query: str
    is_own: bool


def materialized_views(dsn: str) -> list[MaterializedView]:
    """All materialized views, the largest first."""
    with open_installed(dsn) as connection:
        rows = connection.execute(load("pgtrickle.commands", "sql/materialized_views.sql")).fetchall()
    return [MaterializedView(RelationName(schema, name), *rest) for schema, name, *rest in rows]
