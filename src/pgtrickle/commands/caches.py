"""Shows and clears the caches of compiled queries."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pgtrickle.catalog import compiled
from pgtrickle.commands.connections import open_installed
from pgtrickle.model.records import Record


@dataclass(frozen=True, slots=True, repr=False)
class CachedQueries(Record):
    """The compiled queries in the catalog for one version of the code."""

    code_version: str
    entries: int
    bytes: int
    oldest: datetime
    newest: datetime
    generation: int


def clear_caches(dsn: str) -> int:
    """Clear all cache levels in every sidecar; return how many compiled queries the catalog had."""
    with open_installed(dsn) as connection:
        return compiled.clear_caches(connection)


def cache_stats(dsn: str) -> list[CachedQueries]:
    """The compiled queries in the catalog by version of the code, latest first."""
    with open_installed(dsn) as connection:
        return [
            CachedQueries(*row)
            for row in connection.execute("select * from pgtrickle_internal.cache_stats()")
        ]
