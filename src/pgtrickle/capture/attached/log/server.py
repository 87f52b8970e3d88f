"""The server of an attached database: its log, our slot and publication there, and snapshots at a position.

A slot that is created shows a position of the log, and exports a snapshot that sees exactly the transactions
which committed before it. This holds on a standby, too, where `pg_current_snapshot()` does not list the
transactions that are running on the primary.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from secrets import token_hex
from typing import Any, Final

from pgtrickle.capture.wal.slot import Lsn, SlotState
from pgtrickle.model.attached import AttachedDatabase, AttachedTable
from pgtrickle.model.errors import AttachedFailed, Busy
from pgtrickle.postgres.connection import Connection, DatabaseError, sql
from pgtrickle.postgres.exported_snapshot import (
    NewSlot,
    ReplicationRefused,
    SlotWaits,
    take_exported_snapshot,
)
from pgtrickle.postgres.statements import load

PUBLICATION: Final = "pgtrickle_attached"
PATIENCE_SECONDS: Final = 10.0
"""How long to wait for transactions that are running, until a slot is created."""
STANDBY_PATIENCE_SECONDS: Final = 60.0
"""The same on a standby, which waits until the primary tells it which transactions are running."""
STANDBYS_SINCE: Final = 160000
"""From this version on, the log can be decoded on a standby."""
SCHEMAS_SINCE: Final = 150000
"""From this version on, a publication can contain schemas."""


@dataclass(frozen=True, slots=True)
class LogState:
    """The end of the log, when that was, the server, and what is wrong with our slot, in words."""

    end: Lsn
    at: datetime
    place: str
    is_standby: bool
    has_slot: bool
    gap: str | None
    retained: int
    confirmed: Lsn | None = None


def slot_of(database: AttachedDatabase) -> str:
    """The name of our slot. Slots belong to the server, so it is unique there."""
    return f"pgtrickle_{database.reader.replace('-', '')}"


def log_state(remote: Connection, database: AttachedDatabase, position: Lsn | None) -> LogState:
    """The state of the log, and of our slot if everything before `position` was decoded."""
    row = remote.execute(
        load("pgtrickle.capture", "sql/queries/log_state.sql"), {"slot": slot_of(database)}
    ).fetchone()
    assert row is not None
    end, at, is_standby, place, slot, wal_status, confirmed, is_sound, retained = row
    released = None if confirmed is None else Lsn.parse(confirmed)
    state = LogState(Lsn.parse(end), at, place, is_standby, slot is not None, None, retained or 0, released)
    gap = None
    if position is None:
        gap = "its position is not known"
    elif slot is None:
        gap = f"replication slot {slot_of(database)} was dropped"
    elif wal_status == "lost" or not is_sound:
        gap = f"replication slot {slot_of(database)} was invalidated"
    elif released is None or released > position:
        gap = f"replication slot {slot_of(database)} was created again, or read by somebody else"
    elif database.place not in (None, place):
        gap = "another server answers, or it was promoted"
    elif position > state.end:
        gap = "its log has gone back"
    return replace(state, gap=gap)


def slot_lag(state: LogState, position: Lsn) -> SlotState:
    """How much log our slot holds back, and how much of it is not decoded yet."""
    return SlotState(state.retained, max(0, state.end - position))


def check_server(remote: Connection) -> None:
    """Raise unless the log of this server can be decoded."""
    row = remote.execute(
        "select current_setting('wal_level'), pg_is_in_recovery(), r.rolname,"
        " r.rolreplication or r.rolsuper or exists (select from pg_roles m where m.rolname in"
        " ('rds_replication', 'neon_superuser') and pg_has_role(r.oid, m.oid, 'USAGE'))"
        " from pg_roles r where r.rolname = current_user"
    ).fetchone()
    assert row is not None
    wal_level, is_standby, role, may_replicate = row
    if wal_level != "logical":
        raise AttachedFailed(
            f"wal_level is {wal_level} there",
            hint="run alter system set wal_level = logical there, and restart the server",
        )
    if is_standby and remote.info.server_version < STANDBYS_SINCE:
        raise AttachedFailed(
            "it is a standby, and its version of PostgreSQL decodes the log only on a primary",
            hint="attach the primary, or use PostgreSQL 16 or later",
        )
    if not may_replicate:
        raise AttachedFailed(
            f"the role {role} may not use replication slots there",
            hint=f'run alter role "{role}" replication there',
        )


@dataclass(frozen=True, slots=True)
class Described:
    """The definitions of tables as their database has them now, and those that we may have to publish."""

    definitions: dict[int, dict[str, Any]]
    publishable: frozenset[int]


def describe_logged(remote: Connection, tables: Sequence[AttachedTable]) -> Described:
    """The definitions of tables, by our number; a table that does not exist has none."""
    rows = remote.execute(
        load("pgtrickle.capture", "sql/queries/describe_logged.sql"),
        {
            "schemas": [table.schema for table in tables],
            "names": [table.name for table in tables],
            "publication": PUBLICATION,
        },
    ).fetchall()
    found = {(schema, name): definition for schema, name, definition in rows}
    if remote.info.server_version >= SCHEMAS_SINCE:
        for schema, version in remote.execute(
            "select n.nspname, concat_ws(' ', s.oid, s.xmin) from pg_publication p"
            " join pg_publication_namespace s on s.pnpubid = p.oid join pg_namespace n on n.oid = s.pnnspid"
            " where p.pubname = %s",
            (PUBLICATION,),
        ):
            for key, definition in found.items():
                if key[0] == schema:
                    definition["version"] += f" {version}"
    publishable = set()
    for key, definition in found.items():
        is_published, may_publish = definition.pop("is_published"), definition.pop("may_publish")
        if may_publish and not is_published:
            publishable.add(key)
    known = [(table.id, (table.schema, table.name)) for table in tables]
    return Described(
        {number: found[key] for number, key in known if key in found},
        frozenset(number for number, key in known if key in publishable),
    )


def publish(remote: Connection, table: AttachedTable) -> None:
    """Add a table to the publication, in a transaction of its own, before the slot is at its changes."""
    name = sql.Identifier(table.schema, table.name)
    row = remote.execute("select from pg_publication where pubname = %s", (PUBLICATION,)).fetchone()
    if row is not None:
        statement = sql.SQL("alter publication {} add table {}").format(sql.Identifier(PUBLICATION), name)
    else:
        options = ", publish_generated_columns = stored" if remote.info.server_version >= 180000 else ""
        statement = sql.SQL(
            "create publication {} for table {} with (publish_via_partition_root = true{})"
        ).format(sql.Identifier(PUBLICATION), name, sql.SQL(options))
    remote.execute("set local lock_timeout = '5s'")
    remote.execute(statement)
    remote.commit()


def take_snapshot(
    dsn: str, remote: Connection, database: AttachedDatabase, *, is_standby: bool, is_first: bool
) -> Lsn:
    """Take a snapshot in the transaction of `remote`, which may have locks; returns its position in the log.

    It sees the transactions that committed before this position. With `is_first` it is that of our slot,
    which is created; else that of a slot which exists only for this moment.
    """
    slot = NewSlot(
        slot_of(database) if is_first else f"{slot_of(database)}_{token_hex(4)}",
        is_temporary=not is_first,
        patience_seconds=STANDBY_PATIENCE_SECONDS if is_standby else PATIENCE_SECONDS,
    )
    try:
        return Lsn.parse(take_exported_snapshot(dsn, slot, remote))
    except ReplicationRefused as error:
        raise AttachedFailed(f"it refuses replication: {error}") from error
    except SlotWaits as error:
        hint = (
            "if nobody writes on the primary, run select pg_log_standby_snapshot() there"
            if is_standby
            else "a snapshot waits for all transactions that began before it"
        )
        raise Busy("transactions that began before are still running there", hint=hint) from error


def advance(remote: Connection, database: AttachedDatabase, position: Lsn) -> None:
    """Release the log before a position, which is stored here."""
    remote.execute(
        "select pg_replication_slot_advance(s.slot_name, %s::pg_lsn) from pg_replication_slots s"
        " where s.slot_name = %s and s.confirmed_flush_lsn < %s::pg_lsn and not s.active",
        (str(position), slot_of(database), str(position)),
    )
    remote.commit()


def drop_slot(remote: Connection, database: AttachedDatabase) -> None:
    """Drop our slot, if it is there."""
    remote.execute(
        "select pg_drop_replication_slot(s.slot_name) from pg_replication_slots s where s.slot_name = %s",
        (slot_of(database),),
    )
    remote.commit()


def drop_publication(remote: Connection) -> None:
    """Drop the publication if it is ours and no database reads it any more."""
    row = remote.execute(
        "select not pg_is_in_recovery() and exists (select from pg_publication p where p.pubname = %s and"
        " p.pubowner = (select r.oid from pg_roles r where r.rolname = current_user))"
        " and not exists (select from pg_replication_slots s"
        " where s.database = current_database() and s.slot_name ~ '^pgtrickle_[0-9a-f]{32}')",
        (PUBLICATION,),
    ).fetchone()
    if row is not None and row[0]:
        with suppress(DatabaseError), remote.transaction():
            remote.execute(sql.SQL("drop publication {}").format(sql.Identifier(PUBLICATION)))
    remote.commit()


def flush(remote: Connection) -> None:
    """Force the log to disk: others may commit before it is there, and decoding reads no further."""
    row = remote.execute(
        "select case when pg_is_in_recovery() then false"
        " else pg_current_wal_flush_lsn() < pg_current_wal_insert_lsn() end"
    ).fetchone()
    if row is not None and row[0]:
        remote.execute("set local synchronous_commit = local")
        remote.execute("select pg_logical_emit_message(true, 'pgtrickle', '')")
    remote.commit()
