"""Has stand-ins and copies that fit the tables whose log is decoded, and publishes what is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pgtrickle.capture.attached.log.server import describe_logged, publish
from pgtrickle.capture.attached.stand_ins import StandIns
from pgtrickle.capture.attached.tables import attached_tables
from pgtrickle.model.attached import AttachedDatabase, AttachedTable
from pgtrickle.postgres.connection import Connection


def fit_tables(
    database: AttachedDatabase, local: Connection, remote: Connection, released: dict[int, float]
) -> None:
    """Have stand-ins and copies that fit the tables, and publish what is read, as far as we may."""
    tables = attached_tables(local, database.alias)
    found = describe_logged(remote, tables)
    unpublished = [table for table in tables if table.is_read and table.id in found.publishable]
    for table in unpublished:
        # PostgreSQL refuses to update a published table without a replica identity
        if found.definitions[table.id]["obstacle"] is None:
            publish(remote, table)
    if unpublished:
        found = describe_logged(remote, tables)
    remote.rollback()

    def describe(remote: Connection, table: AttachedTable) -> dict[str, Any] | None:
        return with_obstacle(found.definitions.get(table.id), table)

    StandIns(database, local, remote, released, describe).fit_all()
    for table in readable_tables(local, database):
        _fit_copy(local, table)
    local.commit()


def _fit_copy(local: Connection, table: AttachedTable) -> None:
    """Have a copy with the right columns."""
    definition = table.definition
    assert definition is not None
    if not definition["is_full"] and not set(definition["identity"]) <= set(table.wanted):
        # the replica identity is another one than when the copy was made
        local.execute(
            "select pgtrickle_internal.copy_source(s.source_relid, s.columns_captured || array("
            "select a.attnum from pg_attribute a where a.attrelid = s.source_relid"
            " and a.attname = any (%s::name[]) and not a.attisdropped)::smallint[])"
            " from pgtrickle.pgt_sources s where s.source_relid = %s",
            (definition["identity"], table.relation),
        )
        compare_again(local, [table])
    row = local.execute("select pgtrickle_internal.fit_attached(%s)", (table.relation,)).fetchone()
    if row != (False,):
        compare_again(local, [table])


def readable_tables(local: Connection, database: AttachedDatabase) -> list[AttachedTable]:
    """The tables that stream tables read and that can be followed."""
    return [
        table
        for table in attached_tables(local, database.alias)
        if table.is_read and table.last_error is None and table.definition is not None
    ]


def compare_again(local: Connection, tables: Sequence[AttachedTable]) -> None:
    """Note that copies have to be compared with their tables."""
    local.execute(
        "update pgtrickle.pgt_attached_tables set position = null"
        " where table_id = any (%s) and position is not null",
        ([table.id for table in tables],),
    )


def forget_unread(local: Connection, database: AttachedDatabase) -> None:
    """What nobody reads any more is compared if somebody reads it again."""
    unread = [
        table.id
        for table in attached_tables(local, database.alias)
        if table.is_followed and (not table.is_read or table.last_error is not None)
    ]
    if unread:
        local.execute(
            "update pgtrickle.pgt_attached_tables set followed_columns = '{}', position = null"
            " where table_id = any (%s)",
            (unread,),
        )
    local.commit()


def with_obstacle(found: dict[str, Any] | None, table: AttachedTable) -> dict[str, Any] | None:
    """The definition of a table, with the reason if the log lacks a column that stream tables read."""
    if found is None or found["obstacle"] is not None:
        return found
    logged = {column["name"] for column in found["columns"] if column["is_logged"]}
    known = {column["name"] for column in found["columns"]}
    missing = sorted(set(table.wanted) & known - logged)
    if not missing:
        return found
    return found | {"obstacle": f"column {missing[0]} is generated, and its values are not in the log"}
