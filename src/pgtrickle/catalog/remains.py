"""Recovers an installation that lost some of its schemas or tables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from pgtrickle.model.errors import PermissionDenied
from pgtrickle.postgres.connection import Connection, DatabaseError, sql
from pgtrickle.postgres.statements import load

SCHEMAS: Final = ("pgtrickle", "pgtrickle_internal", "pgtrickle_changes", "pgtrickle_state")
HELPERS: Final = SCHEMAS[1]
ATTACHED: Final = "pgtrickle_attached"
"""The schema of the stand-ins for tables of other databases; it is empty in most databases."""
_ALL: Final = (*SCHEMAS, ATTACHED)
REASON: Final = "parts of pgtrickle were removed and have been installed again"
ASIDE: Final = "pgtrickle_removed"
_KEPT: Final = ("pgt_stream_tables", "pgt_dependencies", "pgt_refresh_history", "pgt_gates", "pgt_drain")
"""The tables whose rows are kept, each after those that it refers to."""
_CREATED: Final = re.compile(r"create table (?:if not exists )?pgtrickle\.(\w+)")


@dataclass(frozen=True, slots=True)
class Remains:
    """The existing schemas of pgtrickle with their owners, and the tables in the schema pgtrickle."""

    owners: Mapping[str, str]
    tables: frozenset[str]

    @classmethod
    def of(cls, connection: Connection) -> Remains:
        """Read only PostgreSQL's catalogs: nothing of pgtrickle may exist."""
        schemas = connection.execute(
            "select nspname, pg_get_userbyid(nspowner) from pg_namespace where nspname = any (%s)",
            (list(_ALL),),
        ).fetchall()
        tables = connection.execute(
            "select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace"
            " where n.nspname = 'pgtrickle' and c.relkind = 'r'"
        ).fetchall()
        return cls(dict(schemas), frozenset(name for (name,) in tables))

    def lacks(self, migrations: Sequence[str]) -> tuple[str, ...]:
        """Missing parts that these migrations created: tables of the catalog, and the schema of helpers.

        Tables have triggers that call helpers; they were dropped with that schema.
        """
        text = "\n".join(load("pgtrickle.catalog", f"sql/migrations/{name}") for name in migrations)
        missing = [name for name in dict.fromkeys(_CREATED.findall(text)) if name not in self.tables]
        if f"create schema {HELPERS};" in text and HELPERS not in self.owners:
            missing.append(HELPERS)
        return tuple(missing)

    @property
    def has_definitions(self) -> bool:
        """Whether the catalog still has the definitions of stream tables."""
        return "pgt_stream_tables" in self.tables


def check_own(connection: Connection, remains: Remains) -> None:
    """Refuse schemas of another role that hold no installation: their owner could replace our functions."""
    row = connection.execute("select current_user").fetchone()
    assert row is not None
    for schema, owner in remains.owners.items():
        if owner != row[0]:
            raise PermissionDenied(
                f"the schema {schema} belongs to the role {owner} and holds no installation of pgtrickle",
                hint=f"drop it, or connect as {owner}",
            )


def act_as_owner(connection: Connection, owner: str) -> None:
    """Act as the role that owns a schema of pgtrickle, so that one role owns everything."""
    row = connection.execute("select current_user, pg_has_role(%s::name, 'MEMBER')", (owner,)).fetchone()
    assert row is not None
    current, is_member = row
    if not is_member:
        raise PermissionDenied(
            f"pgtrickle belongs to the role {owner} here, and {current} cannot act as that role",
            hint=f"connect as {owner}",
        )
    connection.execute(sql.SQL("set local role {}").format(sql.Identifier(owner)))


def drop_schemas(connection: Connection, remains: Remains) -> list[str]:
    """Drop the existing schemas of pgtrickle, each as its owner, with all triggers. Returns their names."""
    connection.execute("set local lock_timeout = '10s'")
    dropped = [schema for schema in reversed(_ALL) if schema in remains.owners]
    for schema in dropped:
        connection.execute("reset role")
        act_as_owner(connection, remains.owners[schema])
        connection.execute(sql.SQL("drop schema {} cascade").format(sql.Identifier(schema)))
    return dropped


def set_aside(connection: Connection, remains: Remains) -> None:
    """Drop what can be created again, and rename the catalog, so that a new one can be filled from it."""
    others = {schema: owner for schema, owner in remains.owners.items() if schema != SCHEMAS[0]}
    drop_schemas(connection, Remains(others, frozenset()))
    connection.execute("reset role")
    act_as_owner(connection, remains.owners[SCHEMAS[0]])
    connection.execute(
        sql.SQL("alter schema {} rename to {}").format(sql.Identifier(SCHEMAS[0]), sql.Identifier(ASIDE))
    )


def take_over(connection: Connection) -> int:
    """Fill the new catalog from the old one. Returns how many stream tables were kept."""
    for table in _KEPT:
        columns = connection.execute(
            "select a.attname from pg_attribute a join pg_attribute b on b.attname = a.attname"
            " and b.attrelid = to_regclass(%s) and not b.attisdropped and b.attnum > 0"
            " where a.attrelid = to_regclass(%s) and not a.attisdropped and a.attnum > 0 order by a.attnum",
            (f"pgtrickle.{table}", f"{ASIDE}.{table}"),
        ).fetchall()
        if columns:
            connection.execute(_copy_statement(table, [name for (name,) in columns]))
    for table, column in (("pgt_stream_tables", "pgt_id"), ("pgt_refresh_history", "refresh_id")):
        connection.execute(
            sql.SQL(
                "select setval(pg_get_serial_sequence({}, {}), coalesce(max({}), 0) + 1, false) from {}"
            ).format(
                sql.Literal(f"pgtrickle.{table}"),
                sql.Literal(column),
                sql.Identifier(column),
                sql.Identifier("pgtrickle", table),
            )
        )
    connection.execute("set local lock_timeout = '10s'")
    connection.execute(sql.SQL("drop schema {} cascade").format(sql.Identifier(ASIDE)))
    return _analyse_all(connection)


def ensure_state(connection: Connection) -> bool:
    """Create the schema of states if it is missing, and mark all tables for a reload. True if it was."""
    row = connection.execute("select pgtrickle_internal.create_state()").fetchone()
    return bool(row and row[0])


def _copy_statement(table: str, columns: list[str]) -> sql.Composed:
    condition = "true"
    if table == "pgt_stream_tables":
        # skip a table that was dropped, or whose OID now belongs to another one
        condition = (
            "exists (select from pg_class c join pg_namespace n on n.oid = c.relnamespace"
            " where c.oid = t.pgt_relid and c.relname = t.pgt_name and n.nspname = t.pgt_schema)"
        )
    elif "pgt_id" in columns:
        condition = "t.pgt_id in (select s.pgt_id from pgtrickle.pgt_stream_tables s)"
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    return sql.SQL("insert into {} ({}) overriding system value select {} from {} t where {}").format(
        sql.Identifier("pgtrickle", table),
        names,
        names,
        sql.Identifier(ASIDE, table),
        sql.SQL(cast(Any, condition)),
    )


def _analyse_all(connection: Connection) -> int:
    """Analyse every query again: dependencies, guards, buffers and triggers follow from it."""
    connection.execute("select pgtrickle_internal.restore_guards()")
    tables = connection.execute("select pgt_id from pgtrickle.pgt_stream_tables order by pgt_id").fetchall()
    for (table,) in tables:
        try:
            with connection.transaction():
                connection.execute("select pgtrickle_internal.reanalyse(%s, %s)", (table, REASON))
        except DatabaseError as error:
            connection.execute(
                "update pgtrickle.pgt_stream_tables set status = 'ERROR', last_error = %s,"
                " needs_reinit = true, reinit_reason = %s where pgt_id = %s",
                (f"{REASON}: {error.diag.message_primary or error}", REASON, table),
            )
    return len(tables)
