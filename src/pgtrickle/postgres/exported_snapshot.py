"""Snapshots whose position in the log is known: PostgreSQL exports one when it creates a replication slot."""

from __future__ import annotations

import threading
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg import sql

from pgtrickle.postgres.connection import ENCODING, Connection

PLUGIN: Final = "pgoutput"
_CANCELED: Final = "57014"


class SlotWaits(Exception):
    """Transactions that began before are still running, so the slot could not be created in time."""


class ReplicationRefused(Exception):
    """The server accepts no replication connection; the message says why."""


@dataclass(frozen=True, slots=True)
class NewSlot:
    """A slot to create; a temporary one is dropped at once, and only its snapshot stays."""

    name: str
    is_temporary: bool
    patience_seconds: float


def take_exported_snapshot(dsn: str, slot: NewSlot, reader: Connection) -> str:
    """Create a slot, and give its snapshot to the transaction of `reader`, which may have locks.

    Returns the position of the slot. The snapshot sees exactly the transactions that committed before it.
    """
    try:
        sender = psycopg.connect(
            dsn,
            autocommit=True,
            replication="database",
            application_name="pgtrickle snapshot",
            client_encoding=ENCODING,
        )
    except psycopg.Error as error:
        raise ReplicationRefused(str(error).strip()) from None
    with closing(sender):
        _, position, snapshot, _ = _create(sender, slot)
        reader.execute(sql.SQL("set transaction snapshot {}").format(sql.Literal(snapshot)))
    return str(position)


def _create(sender: psycopg.Connection[Any], slot: NewSlot) -> tuple[Any, ...]:
    timer = threading.Timer(slot.patience_seconds, sender.cancel)
    timer.daemon = True
    timer.start()
    try:
        row: tuple[Any, ...] | None = sender.execute(
            # the server knows these words in capitals only
            sql.SQL("CREATE_REPLICATION_SLOT {} {} LOGICAL {} EXPORT_SNAPSHOT").format(
                sql.Identifier(slot.name),
                sql.SQL("TEMPORARY" if slot.is_temporary else ""),
                sql.SQL(PLUGIN),
            )
        ).fetchone()
    except psycopg.Error as error:
        if error.sqlstate == _CANCELED:
            raise SlotWaits from error
        raise
    finally:
        timer.cancel()
    assert row is not None
    return row
