"""Reads a slot by SQL functions. This works wherever SQL does, also through a pooler in transaction mode.

Each call decodes again from the position that the server can restart from, which moves every 15 s or so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pgtrickle.capture.wal.pgoutput import Commit, Message, parse
from pgtrickle.capture.wal.reader import SlotTaken
from pgtrickle.capture.wal.slot import START, Lsn, SlotLost
from pgtrickle.postgres.connection import Connection, DatabaseError, sql

FETCH_MESSAGES: Final = 5_000
UNDEFINED_OBJECT: Final = "42704"
OBJECT_IN_USE: Final = "55006"


@dataclass(slots=True)
class SqlReader:
    """A `LogReader` on a connection that others may use, too; `read` needs a transaction."""

    connection: Connection
    slot: str
    publication: str
    reached: Lsn = START

    def read(self, end: Lsn, most: int) -> Iterator[Message | None]:
        """Read the messages through a cursor: the server keeps them, so that memory here is bounded."""
        query = sql.SQL(
            "select data from pg_logical_slot_peek_binary_changes({}, {}, {},"
            " 'proto_version', '1', 'publication_names', {})"
        ).format(*map(sql.Literal, (self.slot, str(end), most, self.publication)))
        count, committed = 0, self.reached
        with self.connection.cursor("decoded", binary=True) as cursor:
            cursor.itersize = FETCH_MESSAGES
            try:
                cursor.execute(query)
                for (data,) in cursor:
                    count += 1
                    message = parse(data)
                    if isinstance(message, Commit):
                        committed = max(committed, Lsn(message.end_lsn))
                    yield message
            except DatabaseError as error:
                if error.sqlstate == UNDEFINED_OBJECT:
                    raise SlotLost("the publication was not there when a change was written") from error
                if error.sqlstate == OBJECT_IN_USE:
                    raise SlotTaken from error
                raise
        self.reached = end if count < most else committed

    def confirm(self, position: Lsn) -> None:
        """Advance the slot."""
        self.connection.execute(
            "select pg_replication_slot_advance(slot_name, %(position)s::pg_lsn) from pg_replication_slots"
            " where slot_name = %(slot)s and wal_status <> 'lost'"
            " and confirmed_flush_lsn < %(position)s::pg_lsn",
            {"slot": self.slot, "position": str(position)},
        )

    def close(self) -> None:
        """Nothing is held between two calls."""
