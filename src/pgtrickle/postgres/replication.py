"""A replication connection: the server sends the log of a slot as it is written, and is told what was stored.

https://www.postgresql.org/docs/current/protocol-replication.html
"""

from __future__ import annotations

import os
import re
import select
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from struct import Struct
from typing import Final

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.pq import ConnStatus, DiagnosticField, ExecStatus, PGconn
from psycopg.pq.abc import PGresult

from pgtrickle.postgres.connection import sql
from pgtrickle.postgres.settings import EXACT, SAFE_PATH

CONNECT_SECONDS: Final = 5
RECEIVED_BYTES: Final = 1 << 16
_DATA, _KEEPALIVE, _STATUS = b"w", b"k", b"r"
_DATA_HEAD: Final = 25
_KEEPALIVE_FORM: Final = Struct(">QqB")
_STATUS_FORM: Final = Struct(">cQQQqB")
_ADDRESS: Final = re.compile(r"^connection to server .*? failed: ")
_EPOCH: Final = 946_684_800
"""Times are counted from 2000 on."""


class Refused(Exception):
    """The server or a pooler accepts no replication connection; the message says why."""


class StreamEnded(Exception):
    """The server has ended the stream, or the connection is lost; `sqlstate` is None if it gave no error."""

    def __init__(self, message: str, sqlstate: str | None = None) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


@dataclass(frozen=True, slots=True)
class Keepalive:
    """Everything before a position was sent."""

    position: int
    wants_reply: bool


class Replication:
    """The stream of one slot. Not thread-safe."""

    def __init__(self, dsn: str, encoding: str) -> None:
        """Connect. Raises Refused."""
        conninfo = make_conninfo(
            dsn,
            replication="database",
            application_name="pgtrickle wal",
            client_encoding=encoding,
            connect_timeout=CONNECT_SECONDS,
        )
        self._connection = PGconn.connect(conninfo.encode())
        try:
            if self._connection.status != ConnStatus.OK:
                raise Refused(_first_line(self._connection.error_message))
            settings = {**EXACT, "search_path": SAFE_PATH}
            for name, value in settings.items():
                self._run(f"select pg_catalog.set_config('{name}', '{value}', false)", ExecStatus.TUPLES_OK)
        except StreamEnded as ended:
            self.close()
            raise Refused(str(ended)) from ended
        except BaseException:
            self.close()
            raise

    def start(self, slot: str, publication: str, position: int) -> None:
        """Let the server send the transactions that commit after a position, large ones while they run."""
        statement = sql.SQL(
            "START_REPLICATION SLOT {} LOGICAL {} (proto_version '2', streaming 'on', messages 'true',"
            " publication_names {})"
        ).format(sql.Identifier(slot), sql.SQL(_printed(position)), sql.Literal(publication))
        self._run(statement.as_string(None), ExecStatus.COPY_BOTH)
        # what we do not read yet, the server need not decode yet: it pauses when the buffer is full
        with suppress(OSError), socket.socket(fileno=os.dup(self._connection.socket)) as receiving:
            receiving.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVED_BYTES)

    def receive(self) -> bytes | Keepalive | None:
        """What the server has sent: a message of the plugin or a keepalive; None if there is nothing."""
        size, data = self._connection.get_copy_data(1)
        if size == 0:
            self._consume()
            size, data = self._connection.get_copy_data(1)
        if size == 0:
            return None
        if size < 0:
            raise self._ended()
        if data[:1] == _DATA:
            return bytes(data[_DATA_HEAD:])
        position, _, wants_reply = _KEEPALIVE_FORM.unpack_from(data, 1)
        return Keepalive(position, bool(wants_reply))

    def wait(self, seconds: float) -> bool:
        """Wait until the server has sent something, or the connection is closed; False if nothing happens."""
        try:
            readable, _, _ = select.select([self._connection.socket], [], [], seconds)
        except (OSError, ValueError, psycopg.Error):
            return True
        return bool(readable)

    def report(self, received: int, stored: int, *, asks: bool) -> None:
        """Tell the server what was received and stored, and whether to answer at once how far it is."""
        moment = int((time.time() - _EPOCH) * 1_000_000)
        status = _STATUS_FORM.pack(_STATUS, received, stored, stored, moment, asks)
        try:
            self._connection.put_copy_data(status)
            self._connection.flush()
        except psycopg.Error as error:
            raise StreamEnded(str(error)) from error

    def close(self) -> None:
        """End the connection, and with it the use of the slot."""
        self._connection.finish()

    def _consume(self) -> None:
        try:
            self._connection.consume_input()
        except psycopg.Error as error:
            raise StreamEnded(str(error)) from error

    def _run(self, statement: str, expected: ExecStatus) -> None:
        result = self._connection.exec_(statement.encode())
        if result.status != expected:
            raise _error_of(result)

    def _ended(self) -> StreamEnded:
        result = self._connection.get_result()
        if result is None or result.status != ExecStatus.FATAL_ERROR:
            return StreamEnded("the server has ended the stream")
        return _error_of(result)


def _error_of(result: PGresult) -> StreamEnded:
    sqlstate = result.error_field(DiagnosticField.SQLSTATE)
    return StreamEnded(_first_line(result.error_message), sqlstate.decode() if sqlstate else None)


def _first_line(message: bytes) -> str:
    """What went wrong, without the address: everybody may read it."""
    return _ADDRESS.sub("", message.decode(errors="replace").strip().partition("\n")[0])


def _printed(position: int) -> str:
    """A position as PostgreSQL writes it, such as `16/B374D848`."""
    return f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"
