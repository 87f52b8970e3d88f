"""Lists the privileges that roles need for pgtrickle and lack, as SQL."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from pgtrickle.commands.connections import open_connection
from pgtrickle.model.errors import UnknownRelation, UnknownSchema
from pgtrickle.postgres.connection import Connection, login_search_path
from pgtrickle.postgres.statements import load


def grants(
    dsn: str,
    role: str,
    *,
    owners: Sequence[str] = (),
    sources: Sequence[str] = (),
    schema: str = "public",
) -> list[str]:
    """The SQL statements that give roles what they lack. Nothing is changed.

    `role` installs pgtrickle and runs the sidecar. `owners` create stream tables in `schema`; without them,
    `role` does that too. `sources` are the tables that the stream tables read; without them, every table.
    """
    with open_connection(dsn) as connection:
        creators = list(owners) or [role]
        values = {
            "sidecar": role,
            "owners": creators,
            "schema": _schema(connection, schema),
            "sources": [_relation(connection, source) for source in sources] or None,
        }
        needed = connection.execute(load("pgtrickle.commands", "sql/grants.sql"), values).fetchall()
        statements = [
            f"create role {_quoted(connection, name)} login"
            for name in dict.fromkeys((role, *creators))
            if not _exists(connection, name)
        ]
        for (_, privileges, name), group in groupby(needed, key=lambda row: (row[0], row[1], row[3])):
            objects = _listed([row[2] for row in group])
            statements.append(f"grant {privileges} on {objects} to {_quoted(connection, name)}")
        return statements


def _listed(objects: Sequence[str]) -> str:
    """The objects of one GRANT, which names their kind once: `schema a, b`."""
    kind = next((kind for kind in ("database ", "schema ") if objects[0].startswith(kind)), "")
    return kind + ", ".join(name.removeprefix(kind) for name in objects)


def _schema(connection: Connection, schema: str) -> str:
    row = connection.execute("select from pg_namespace where nspname = %s", (schema,)).fetchone()
    if row is None:
        raise UnknownSchema(f"there is no schema {schema}", hint="create it first, or name another one")
    return schema


def _relation(connection: Connection, name: str) -> int:
    with login_search_path(connection):
        row = connection.execute("select to_regclass(%s)::oid::bigint", (name,)).fetchone()
    if row is None or row[0] is None:
        raise UnknownRelation(f"there is no table {name}", hint="outside the search_path, write schema.name")
    return int(row[0])


def _exists(connection: Connection, role: str) -> bool:
    return connection.execute("select from pg_roles where rolname = %s", (role,)).fetchone() is not None


def _quoted(connection: Connection, role: str) -> str:
    row = connection.execute("select quote_ident(%s)", (role,)).fetchone()
    assert row is not None
    return str(row[0])
