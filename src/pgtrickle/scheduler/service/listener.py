"""Wakes the sidecar: a connection that listens for notifications and sets an event when one arrives.

It must lead straight to the server, because a pooler in transaction mode loses LISTEN.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from pgtrickle.model.errors import PgTrickleError
from pgtrickle.postgres.connection import Connection, DatabaseError, connect, sql

CHANNEL: Final = "pgtrickle_wake"
RECONNECT_SECONDS: Final = 1.0
STEP_SECONDS: Final = 0.5
CHECK_SECONDS: Final = 30.0
"""After this long without a notification, check that the server is still there."""


class Listener:
    """Sets `heard` at every notification; reconnects by itself.

    `began` is called with each new connection, `step` with it twice a second. Notifications sent while it was
    not connected are lost, so `heard` is also set after each connection.
    """

    def __init__(
        self,
        dsn: str,
        heard: threading.Event,
        *,
        channel: str = CHANNEL,
        began: Callable[[Connection], None] = lambda connection: None,
        step: Callable[[Connection], None] = lambda connection: None,
    ) -> None:
        self._dsn, self._heard, self._channel = dsn, heard, channel
        self._began, self._step = began, step
        self._is_listening = threading.Event()
        # closing the write end ends the thread's wait for the server
        self._woken, self._wake = os.pipe()
        self._thread = threading.Thread(target=self._serve, name="listener", daemon=True)
        self._is_closed = False

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def is_listening(self) -> bool:
        """Whether a notification sent now would arrive."""
        return self._is_listening.is_set()

    def close(self) -> None:
        """Stop listening and close the connection."""
        if self._is_closed:
            return
        self._is_closed = True
        os.close(self._wake)
        self._thread.join()
        os.close(self._woken)

    def _serve(self) -> None:
        while not self._is_told_to_stop(0):
            try:
                with connect(self._dsn, autocommit=True, application_name="pgtrickle listener") as connection:
                    connection.execute(sql.SQL("listen {}").format(sql.Identifier(self._channel)))
                    self._began(connection)
                    self._is_listening.set()
                    self._heard.set()
                    self._listen(connection)
                    return
            except (PgTrickleError, DatabaseError):
                # the loop polls meanwhile, and reports what is wrong with the server
                if self._is_told_to_stop(RECONNECT_SECONDS):
                    return
            finally:
                self._is_listening.clear()

    def _listen(self, connection: Connection) -> None:
        """Wait for notifications until told to stop; raises when the connection is lost."""
        asked = time.monotonic()
        while True:
            ready, _, _ = select.select([connection.fileno(), self._woken], [], [], STEP_SECONDS)
            if self._woken in ready:
                return
            self._step(connection)
            if time.monotonic() - asked > CHECK_SECONDS:
                asked = time.monotonic()
                connection.execute("select")
            for _ in connection.notifies(timeout=0):
                self._heard.set()

    def _is_told_to_stop(self, seconds: float) -> bool:
        return bool(select.select([self._woken], [], [], seconds)[0])
