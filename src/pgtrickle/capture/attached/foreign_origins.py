"""Tables whose origin is in a database that we serve: foreign tables, and what the configuration declares."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import md5
from typing import Final

from pgtrickle.model.databases import DeclaredOrigin
from pgtrickle.postgres.addresses import address_parts
from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.rows import rows_as

_LOOPBACK: Final = {"localhost": "127.0.0.1", "::1": "127.0.0.1"}


@dataclass(frozen=True, slots=True)
class ForeignOrigin:
    """A foreign table that stream tables read, and the table of another database that it leads to."""

    source: int
    server_name: str
    host: str | None
    port: str
    dbname: str | None
    origin_schema: str
    origin_name: str

    def reference(self, served: Mapping[str, str]) -> str | None:
        """The name of the served database that it leads to; `served` has the address of each."""
        wanted = (_plain(self.host), self.port, self.dbname)
        for name, dsn in served.items():
            parts = address_parts(dsn)
            hosts = {_plain(parts.get("host")), _plain(parts.get("hostaddr"))} - {None}
            if wanted[0] in hosts and (str(parts.get("port") or 5432), parts.get("dbname")) == wanted[1:]:
                return name
        return None


def adopt_foreign_origins(connection: Connection, served: Mapping[str, str], leaves: Collection[int]) -> int:
    """Follow the origins of foreign tables that are in served databases; returns of how many tables.

    Those that it `leaves` alone were found to differ from their origin.
    """
    found = rows_as(ForeignOrigin, connection.execute(_LIST))
    adopted = 0
    for origin in found:
        reference = origin.reference(served)
        if reference is not None and origin.source not in leaves:
            _adopt(connection, origin.source, reference, origin.origin_schema, origin.origin_name)
            adopted += 1
    return adopted


def adopt_declared_origins(connection: Connection, declared: Sequence[DeclaredOrigin]) -> int:
    """Follow the origins that the configuration declares, of tables that stream tables read."""
    adopted = 0
    for one in declared:
        row = connection.execute(
            "select c.oid::bigint from pg_class c join pg_namespace n on n.oid = c.relnamespace"
            " where n.nspname = %s and c.relname = %s and not pgtrickle_internal.is_attached(c.oid)"
            " and exists (select from pgtrickle.pgt_dependencies d where d.source_relid = c.oid"
            " and d.source_type in ('table', 'foreign_table'))",
            (one.schema, one.name),
        ).fetchone()
        if row is not None:
            _adopt(connection, row[0], one.reference, one.origin_schema, one.origin_name)
            adopted += 1
    return adopted


_LIST: Final = (
    "select source::bigint, server_name::text, host, port, dbname, origin_schema, origin_name"
    " from pgtrickle_internal.foreign_origins()"
)


def _adopt(connection: Connection, source: int, reference: str, schema: str, name: str) -> None:
    with connection.transaction():
        connection.execute(
            "select pgtrickle_internal.adopt_origin(%s, %s, %s, %s, %s)",
            (source, _alias(reference), reference, schema, name),
        )


def _alias(reference: str) -> str:
    """An alias that no user would choose, the same for all tables of a database."""
    plain = re.sub(r"[^a-z0-9_]", "_", reference.lower())[:20]
    return f"origin_{plain}_{md5(reference.encode(), usedforsecurity=False).hexdigest()[:8]}"


def _plain(host: object) -> str | None:
    return None if not host else _LOOPBACK.get(str(host), str(host))
