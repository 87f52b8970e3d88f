"""Compiled queries in the catalog, which all sidecars share, as bytes that only their codec reads."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from pgtrickle.model.stream_table import StreamTableId
from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.rows import row_as
from pgtrickle.postgres.statements import load

OTHER_VERSIONS_FOR: Final = timedelta(days=7)
"""How long to keep what another version of the code compiled: a sidecar of that version may be running."""
_PACKAGE: Final = "pgtrickle.catalog"


@dataclass(frozen=True, slots=True)
class CompiledFrom:
    """What a compilation depends on: the database, and `text`, which changes with every other input."""

    database: str
    text: str


def compiled_from(connection: Connection, table: StreamTableId) -> CompiledFrom:
    """What the compilation of a stream table's query depends on, besides its row in the catalog."""
    statement = load(_PACKAGE, "sql/queries/compiled_from.sql")
    return row_as(CompiledFrom, connection.execute(statement, {"id": table}))


def load_compiled(
    connection: Connection, table: StreamTableId, code_version: str, fingerprint: str, generation: int
) -> bytes | None:
    """The compilation that this version of the code saved for exactly this definition, or None."""
    row = connection.execute(
        "select payload from pgtrickle.pgt_compiled where pgt_id = %s and code_version = %s"
        " and fingerprint = %s and generation = %s",
        (table, code_version, fingerprint, generation),
        binary=True,
    ).fetchone()
    return bytes(row[0]) if row else None


def save_compiled(
    connection: Connection,
    table: StreamTableId,
    code_version: str,
    fingerprint: str,
    generation: int,
    payload: bytes,
    plan: str,
) -> None:
    """Save a compilation for all sidecars, in place of an older one of the same version of the code.

    `plan` is what people read of it.
    """
    connection.execute(
        load(_PACKAGE, "sql/queries/save_compiled.sql"),
        {
            "id": table,
            "code_version": code_version,
            "fingerprint": fingerprint,
            "generation": generation,
            "payload": payload,
            "plan": plan,
        },
    )


def cache_generation(connection: Connection) -> int:
    """How often the caches have been cleared."""
    row = connection.execute("select generation from pgtrickle.pgt_caches").fetchone()
    assert row is not None
    return int(row[0])


def clear_caches(connection: Connection) -> int:
    """Clear every cache of every sidecar. Returns how many compiled queries the catalog held."""
    row = connection.execute("select pgtrickle_internal.clear_caches()").fetchone()
    assert row is not None
    return int(row[0])


def prune_compiled(connection: Connection, code_version: str) -> int:
    """Remove what other versions of the code compiled long ago. Returns how many rows it removed."""
    return connection.execute(
        "delete from pgtrickle.pgt_compiled where code_version <> %s and compiled_at < now() - %s::interval",
        (code_version, OTHER_VERSIONS_FOR),
    ).rowcount
