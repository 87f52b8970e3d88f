"""The replication slot of a database: its state and position, and how it is created and dropped."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final, Self

from pgtrickle.postgres.connection import Connection, sql

PLUGIN: Final = "pgoutput"
PUBLICATION: Final = "pgtrickle"
PATIENCE: Final = "10s"
"""How long an attempt to create the slot waits for transactions that are running."""
FREE_SECONDS: Final = 5.0
FAILOVER_SINCE: Final = 170000
"""From this version on, a slot can be synchronized to standbys, so that it survives a failover."""


class SlotLost(Exception):
    """The slot cannot be read, or lacks changes; the message says why."""


class Lsn(int):
    """A position in the write-ahead log."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the text that PostgreSQL shows, such as `16/B374D848`."""
        high, low = text.split("/")
        return cls((int(high, 16) << 32) | int(low, 16))

    def __str__(self) -> str:
        return f"{self >> 32:X}/{self & 0xFFFFFFFF:X}"


START: Final = Lsn(0)


@dataclass(frozen=True, slots=True)
class SlotState:
    """How much log the slot holds back, and how much of it is not decoded yet, in bytes."""

    retained: int
    lag: int


def slot_state(connection: Connection) -> SlotState | None:
    """The state of the slot; None if there is none."""
    row = connection.execute(
        "select coalesce(pg_wal_lsn_diff(pg_current_wal_insert_lsn(), s.restart_lsn), 0)::bigint,"
        " pg_wal_lsn_diff(pg_current_wal_insert_lsn(), w.decoded_lsn)::bigint"
        " from pgtrickle.pgt_wal w join pg_replication_slots s on s.slot_name = w.slot"
    ).fetchone()
    return SlotState(*row) if row else None


def may_use_slots(connection: Connection) -> bool:
    """Whether the server would let us drop the slot: the role may have lost the right."""
    row = connection.execute("select pgtrickle_internal.may_replicate(pgtrickle.sidecar_role())").fetchone()
    return row == (True,)


def ensure_slot(connection: Connection) -> bool:
    """Create the slot unless it exists, on a connection in autocommit mode; waits for transactions.

    Returns False if sources still rely on a slot that is lost: they return to triggers first.
    """
    with connection.transaction():
        _lock_decoding(connection)
        row = connection.execute(
            "select pgtrickle_internal.slot_gap(), exists (select from pgtrickle.pgt_sources"
            " where capture = 'wal')"
        ).fetchone()
        assert row is not None
        gap, is_used = row
        if gap is None or is_used:
            return gap is None
        _drop(connection)
        connection.execute("select pgtrickle_internal.create_wal_publication()")
    with connection.transaction():
        # PostgreSQL creates no slot in a transaction that has written
        _lock_decoding(connection)
        connection.execute(sql.SQL("set local lock_timeout = {}").format(sql.Literal(PATIENCE)))
        options = (", false, false, true",) if connection.info.server_version >= FAILOVER_SINCE else ()
        created = connection.execute(
            sql.SQL(
                "select s.slot_name, s.lsn from pgtrickle_internal.wal_slot() n,"
                " pg_create_logical_replication_slot(n, {}{}) s"
            ).format(sql.Literal(PLUGIN), sql.SQL("").join(map(sql.SQL, options)))
        ).fetchone()
        assert created is not None
        connection.execute(
            "insert into pgtrickle.pgt_wal (slot, decoded_lsn, publication) select %s, %s, p.oid"
            " from pg_publication p where p.pubname = %s",
            (*created, PUBLICATION),
        )
    return True


def drop_slot(connection: Connection) -> None:
    """Drop the slot and forget its position."""
    with connection.transaction():
        _lock_decoding(connection)
        _drop(connection)


def free_slot(connection: Connection, patience: float = FREE_SECONDS) -> bool:
    """End the session that reads the slot; False if it is still there after a while.

    Every session that opens the slot holds the lock of decoding: hold it, too, if nobody may open it again.
    """
    until = time.monotonic() + patience
    while True:
        reading = connection.execute(
            "select pg_terminate_backend(s.active_pid) from pg_replication_slots s"
            " where s.slot_name = pgtrickle_internal.wal_slot() and s.active_pid is not null"
        ).fetchone()
        if reading is None or time.monotonic() > until:
            return reading is None
        time.sleep(0.01)


def _drop(connection: Connection) -> None:
    free_slot(connection)
    connection.execute(
        "select pg_drop_replication_slot(s.slot_name) from pg_replication_slots s"
        " where s.slot_name = pgtrickle_internal.wal_slot()"
    )
    connection.execute("delete from pgtrickle.pgt_wal")


def _lock_decoding(connection: Connection) -> None:
    connection.execute("select pg_advisory_xact_lock(pgtrickle_internal.wal_lock(), 0)")
