"""Reads a slot through a replication connection. The server decodes each part of the log once.

Large transactions arrive while they run. They are kept aside until they commit, and dropped if they do not.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final, Self

from pgtrickle.capture.wal.pgoutput import (
    Begin,
    Commit,
    Delete,
    Insert,
    Message,
    Relation,
    StreamAbort,
    StreamCommit,
    StreamStart,
    Update,
    is_begin,
    parse,
    parse_stream,
    without_part,
)
from pgtrickle.capture.wal.reader import SlotTaken
from pgtrickle.capture.wal.slot import Lsn, SlotLost
from pgtrickle.capture.wal.spool import Spool
from pgtrickle.postgres.replication import Keepalive, Refused, Replication, StreamEnded

OBJECT_IN_USE: Final = "55006"
UNDEFINED_OBJECT: Final = "42704"
ANSWER_SECONDS: Final = 1.0
"""How long to wait until the server says how far it is. It may be decoding what others wrote."""
GRACE_SECONDS: Final = 0.005
"""How long to wait for more after the server has said that it is not at the end."""
SILENCE_SECONDS: Final = 60.0
"""How long the server may pause in the middle of a transaction."""
_ROWS: Final = (Insert, Update, Delete)


class StreamReader:
    """A `LogReader` that holds the slot as long as it is open. Not thread-safe, except for `wait`."""

    def __init__(self, replication: Replication, position: Lsn) -> None:
        """`replication` was started at this position."""
        self.reached = self._stored = position
        self._replication = replication
        self._spool = Spool()
        self._relations: dict[int, Relation] = {}
        self._next: bytes | None = None

    @classmethod
    def open(cls, dsn: str, slot: str, publication: str, position: Lsn, encoding: str) -> Self:
        """Connect, and begin after a position. Raises Refused, SlotTaken, or StreamEnded."""
        replication = Replication(dsn, encoding)
        try:
            replication.start(slot, publication, position)
        except StreamEnded as ended:
            replication.close()
            if ended.sqlstate == OBJECT_IN_USE:
                raise SlotTaken from ended
            if ended.sqlstate == UNDEFINED_OBJECT:
                raise
            raise Refused(str(ended)) from ended
        except BaseException:
            replication.close()
            raise
        return cls(replication, position)

    def read(self, end: Lsn, most: int) -> Iterator[Message | None]:
        """Read until `end`, or until the server has nothing to send for now."""
        described: set[int] = set()
        count = 0
        self._replication.report(self.reached, self._stored, asks=True)
        is_answered = False
        while count < most:
            found = self._receive(GRACE_SECONDS if is_answered else ANSWER_SECONDS)
            if found is None:
                return
            if isinstance(found, Keepalive):
                is_answered = True
                self._keep_alive(found)
                if self.reached >= end:
                    return
                continue
            begin, messages = self._transaction(found)
            if begin is None:
                continue
            if begin.commit_lsn >= end:
                self._next = found
                return
            count += 1
            yield begin
            for message in messages:
                count += 1
                if isinstance(message, Relation):
                    self._relations[message.id] = message
                    described.add(message.id)
                elif isinstance(message, _ROWS) and message.relation not in described:
                    described.add(message.relation)
                    if message.relation in self._relations:
                        yield self._relations[message.relation]
                elif isinstance(message, Commit):
                    self.reached = max(self.reached, Lsn(message.end_lsn))
                yield message

    def confirm(self, position: Lsn) -> None:
        """Tell the server with the next report, which also keeps the connection alive."""
        self._stored = max(self._stored, position)
        self._replication.report(max(self.reached, self._stored), self._stored, asks=False)

    def has_work(self) -> bool:
        """Whether the server has sent something to decode, or asks for a sign of life.

        It asks when it is shut down, too. Then it waits until we close the connection, and only another
        connection shows that.
        """
        is_asked = False
        while self._next is None:
            found = self._replication.receive()
            if found is None:
                return is_asked
            if isinstance(found, Keepalive):
                self._keep_alive(found)
                is_asked |= found.wants_reply
            else:
                self._next = found
        return True

    def wait(self, seconds: float) -> None:
        """Wait until the server has sent something."""
        self._replication.wait(seconds)

    def close(self) -> None:
        """Release the slot."""
        self._spool.close()
        self._replication.close()

    def _transaction(self, data: bytes) -> tuple[Begin | None, Iterator[Message | None]]:
        """The transaction that a message begins or commits; none if it is a part of one in progress."""
        if is_begin(data):
            message = parse(data)
            assert isinstance(message, Begin)
            return message, self._rest()
        streamed = parse_stream(data)
        if isinstance(streamed, StreamCommit):
            return streamed.begin, self._take(streamed)
        if isinstance(streamed, StreamStart):
            self._keep_aside(streamed.xid)
        elif isinstance(streamed, StreamAbort):
            self._spool.abort(streamed.xid, streamed.part)
        elif streamed is None:
            # outside of transactions, there are only notes that belong to none
            parse(data)
        return None, iter(())

    def _rest(self) -> Iterator[Message | None]:
        """What follows the beginning of a transaction that is sent as a whole."""
        while True:
            found = self._receive(SILENCE_SECONDS)
            if found is None:
                raise StreamEnded("the server has stopped in the middle of a transaction")
            if isinstance(found, Keepalive):
                self._reply(found)
                continue
            message = parse(found)
            yield message
            if isinstance(message, Commit):
                return

    def _take(self, streamed: StreamCommit) -> Iterator[Message | None]:
        yield from self._spool.take(streamed.begin.xid)
        yield streamed.commit

    def _keep_aside(self, xid: int) -> None:
        """Keep the changes of a transaction in progress that follow."""
        while True:
            found = self._receive(SILENCE_SECONDS)
            if found is None:
                raise StreamEnded("the server has stopped in the middle of a transaction")
            if isinstance(found, Keepalive):
                self._reply(found)
            elif found[:1] == b"E":
                return
            else:
                self._spool.add(xid, *without_part(found))

    def _receive(self, seconds: float) -> bytes | Keepalive | None:
        found: bytes | Keepalive | None
        if self._next is not None:
            found, self._next = self._next, None
            return found
        try:
            if (found := self._replication.receive()) is not None:
                return found
            until = time.monotonic() + seconds
            while (found := self._replication.receive()) is None:
                left = until - time.monotonic()
                if left <= 0 or not self._replication.wait(left):
                    return None
        except StreamEnded as ended:
            if ended.sqlstate == UNDEFINED_OBJECT:
                raise SlotLost("the publication was not there when a change was written") from ended
            raise
        return found

    def _keep_alive(self, found: Keepalive) -> None:
        """Everything before the position was sent: we are not in the middle of a transaction."""
        self.reached = max(self.reached, Lsn(found.position))
        self._reply(found)

    def _reply(self, found: Keepalive) -> None:
        if found.wants_reply:
            self._replication.report(self.reached, self._stored, asks=False)
