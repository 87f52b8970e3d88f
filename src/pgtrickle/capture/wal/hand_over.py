"""Hands sources over from triggers to the log and back, as their readers want it and the server allows it."""

from __future__ import annotations

from dataclasses import dataclass

from pgtrickle.capture.wal.slot import drop_slot, ensure_slot, may_use_slots
from pgtrickle.model.stream_table import RelationId
from pgtrickle.postgres.connection import Connection, DatabaseError
from pgtrickle.postgres.statements import load

LOCK_NOT_AVAILABLE = "55P03"


@dataclass(frozen=True, slots=True)
class WalDemand:
    """Whether a stream table asks for the log, whether a source uses it, and whether there is a slot."""

    is_wanted: bool
    is_used: bool
    has_slot: bool

    @property
    def is_any(self) -> bool:
        """Whether there is anything to do about the log."""
        return self.is_wanted or self.is_used or self.has_slot


@dataclass(frozen=True, slots=True)
class HandOver:
    """A source, the way in which it is to be captured, and what prevented that; None if it is done."""

    source: RelationId
    is_to_wal: bool
    obstacle: str | None


def wal_demand(connection: Connection) -> WalDemand:
    """What stream tables ask for, and what there is."""
    row = connection.execute(
        "select exists (select from pgtrickle.pgt_stream_tables where cdc_mode <> 'trigger'),"
        " exists (select from pgtrickle.pgt_sources where capture = 'wal'),"
        " exists (select from pgtrickle.pgt_wal)"
    ).fetchone()
    assert row is not None
    return WalDemand(*row)


def hand_over_sources(connection: Connection) -> list[HandOver]:
    """Hand over every source that should be captured in another way, on a connection in autocommit mode."""
    due = connection.execute(
        "select source::bigint, is_to_wal from pgtrickle_internal.hand_overs()"
    ).fetchall()
    found = [
        HandOver(source, is_to_wal, _hand_over(connection, source, is_to_wal)) for source, is_to_wal in due
    ]
    connection.execute("select pgtrickle_internal.settle_left()")
    return found


def drop_unused_slot(connection: Connection) -> None:
    """Drop the slot and empty the publication once no source needs them: a slot holds the log back."""
    row = connection.execute(
        "select exists (select from pgtrickle.pgt_wal) and not exists (select from pgtrickle.pgt_sources s"
        " where s.capture = 'wal' or pgtrickle_internal.wanted_capture(s.source_relid) <> 'trigger')"
    ).fetchone()
    if row is not None and row[0] and may_use_slots(connection):
        drop_slot(connection)
        connection.execute("select pgtrickle_internal.unpublish_unused()")


def prune_decoded(connection: Connection) -> None:
    """Forget which transactions were decoded a while ago, unless a running refresh needs to know."""
    connection.execute(load("pgtrickle.capture", "sql/queries/prune_decoded.sql"))


def _hand_over(connection: Connection, source: RelationId, is_to_wal: bool) -> str | None:
    """Hand one source over; returns what prevented it."""
    try:
        if is_to_wal:
            if not ensure_slot(connection):
                return "the replication slot is lost"
            connection.execute("select pgtrickle_internal.publish_source(%s)", (source,))
        way = "enter_wal" if is_to_wal else "leave_wal"
        row = connection.execute(f"select pgtrickle_internal.{way}(%s)", (source,)).fetchone()
        obstacle = row[0] if row else None
    except DatabaseError as error:
        if connection.closed:
            raise
        obstacle = (error.diag.message_primary or str(error)).strip()
        if error.sqlstate == LOCK_NOT_AVAILABLE:
            obstacle = "transactions that began before are still running"
    if obstacle is not None:
        connection.execute("select pgtrickle_internal.postpone_hand_over(%s, %s)", (source, obstacle))
    return obstacle
