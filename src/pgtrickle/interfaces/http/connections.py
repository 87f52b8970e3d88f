"""Limits connections, so that clients that stand still do not use up the open files of the sidecar."""

from __future__ import annotations

import asyncio
from typing import Any, Final, Literal

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

MOST_CONNECTIONS: Final = 300
"""With one more, the newest is closed at once."""
HEAD_SECONDS: Final = 15.0
"""How long a client may take to send the head of a request."""
STALL_SECONDS: Final = 60.0
"""How long a client may leave what it is sent unread."""


class BoundedProtocol(H11Protocol):
    """HTTP with limits for the number of connections and for how long they may stand still."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._idle: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, or close it."""
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
        else:
            self._limit_idleness()

    def data_received(self, data: bytes) -> None:
        """Take a part of a request."""
        super().data_received(data)
        self._limit_idleness()

    def pause_writing(self) -> None:
        """Wait until the client has read what it was sent."""
        super().pause_writing()
        self._stalled = self._stalled or self.loop.call_later(STALL_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on."""
        super().resume_writing()
        self._stop_timer("_stalled")

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_timer("_idle")
        self._stop_timer("_stalled")
        super().connection_lost(exc)

    def _limit_idleness(self) -> None:
        """Close the connection soon unless a request is being answered. Single bytes do not prolong that."""
        if self._is_answering():
            self._stop_timer("_idle")
        elif self._idle is None:
            self._idle = self.loop.call_later(HEAD_SECONDS, self._close_if_idle)

    def _close_if_idle(self) -> None:
        self._idle = None
        if not self._is_answering():
            self.transport.abort()

    def _is_answering(self) -> bool:
        # there is none before the first request
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def _stop_timer(self, name: Literal["_idle", "_stalled"]) -> None:
        timer: asyncio.TimerHandle | None = getattr(self, name)
        if timer is not None:
            timer.cancel()
            setattr(self, name, None)
