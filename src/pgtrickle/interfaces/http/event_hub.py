"""Hands events to the clients that listen, without waiting for any of them."""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from pgtrickle.model.errors import ServerBusy

KEPT_EVENTS: Final = 2000
"""How many events a client can have missed and still get after it has reconnected."""
QUEUED_EVENTS: Final = 1000
"""How many events wait for one slow client before it has to start over."""
MOST_LISTENERS: Final = 100
HEARTBEAT_SECONDS: Final = 15.0
LONGEST_NUMBER: Final = 18


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `public` is its JSON for everybody, `full` for those who may see error texts."""

    number: int
    kind: str
    table: str | None
    full: str
    public: str


@dataclass(slots=True, eq=False)
class Listener:
    """A client with the events that it has not got yet. Used in the event loop only."""

    tables: frozenset[str] | None
    began_after: str
    """The id of the last event before it began to listen."""
    waiting: deque[Event] = field(default_factory=deque)
    has_lost: bool = False
    is_closed: bool = False
    wake: asyncio.Event = field(default_factory=asyncio.Event)

    def offer(self, event: Event) -> None:
        """Queue an event; drop everything if the client is too slow."""
        if not self.wants(event):
            return
        if len(self.waiting) >= QUEUED_EVENTS:
            self.waiting.clear()
            self.has_lost = True
        self.waiting.append(event)
        self.wake.set()

    def wants(self, event: Event) -> bool:
        """Whether the event concerns a table that the client asked for."""
        return self.tables is None or event.table is None or event.table in self.tables


class EventHub:
    """All listeners of a server. `publish` may be called in any thread, everything else in the event loop."""

    def __init__(self) -> None:
        self.name = secrets.token_hex(4)
        """Distinguishes the numbers of this process from those of an earlier one."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._number = 0
        self._kept: deque[Event] = deque(maxlen=KEPT_EVENTS)
        self._listeners: set[Listener] = set()

    @property
    def has_listeners(self) -> bool:
        """Whether anybody listens."""
        return bool(self._listeners)

    def open(self, loop: asyncio.AbstractEventLoop) -> None:
        """Deliver from now on, in this loop."""
        self._loop = loop

    def close(self) -> None:
        """End all streams."""
        self._loop = None
        for listener in self._listeners:
            listener.is_closed = True
            listener.wake.set()

    def publish(self, kind: str, full: str, public: str | None = None, *, table: str | None = None) -> None:
        """Hand an event to all listeners."""
        loop = self._loop
        if loop is None:
            return
        try:
            loop.call_soon_threadsafe(self._deliver, kind, table, full, full if public is None else public)
        except RuntimeError:
            # the server stops, and its loop is closed
            return

    def _deliver(self, kind: str, table: str | None, full: str, public: str) -> None:
        self._number += 1
        event = Event(self._number, kind, table, full, public)
        self._kept.append(event)
        for listener in self._listeners:
            listener.offer(event)

    @contextmanager
    def listening(self, tables: frozenset[str] | None, last_id: str | None) -> Iterator[Listener]:
        """A listener that first gets the events after `last_id`, or learns that it has lost some."""
        if len(self._listeners) >= MOST_LISTENERS:
            raise ServerBusy(
                f"{MOST_LISTENERS} clients are already listening", hint="close some pages, or try again later"
            )
        listener = Listener(tables, self.position())
        if last_id:
            self._resume(listener, last_id)
        self._listeners.add(listener)
        try:
            yield listener
        finally:
            self._listeners.discard(listener)

    def _resume(self, listener: Listener, last_id: str) -> None:
        name, _, number = last_id.partition(".")
        is_number = number.isascii() and number.isdigit() and len(number) <= LONGEST_NUMBER
        seen = int(number) if name == self.name and is_number else -1
        oldest = self._kept[0].number if self._kept else self._number + 1
        missed = [event for event in self._kept if event.number > seen and listener.wants(event)]
        if not oldest - 1 <= seen <= self._number or len(missed) > QUEUED_EVENTS:
            listener.has_lost = True
            return
        listener.waiting.extend(missed)

    def message(self, event: Event, *, with_errors: bool) -> str:
        """An event in the format of event streams."""
        data = event.full if with_errors else event.public
        return f"id: {self.name}.{event.number}\nevent: {event.kind}\ndata: {data}\n\n"

    def position(self) -> str:
        """The id of the latest event."""
        return f"{self.name}.{self._number}"


async def messages(
    hub: EventHub,
    listener: Listener,
    hello: str,
    *,
    is_resumed: bool,
    with_errors: bool,
    may_go_on: Callable[[], bool],
) -> AsyncIterator[str]:
    """The stream of one client, with a comment from time to time so that dead connections are noticed."""
    # after a reconnect it has no id: the events that were missed follow, and only they move the position
    position = "" if is_resumed else f"id: {listener.began_after}\n"
    yield f"retry: 2000\n{position}event: hello\ndata: {hello}\n\n"
    while not listener.is_closed and may_go_on():
        if listener.has_lost:
            listener.has_lost = False
            yield f"id: {hub.position()}\nevent: resync\ndata: {{}}\n\n"
        while listener.waiting:
            yield hub.message(listener.waiting.popleft(), with_errors=with_errors)
        listener.wake.clear()
        if listener.waiting or listener.has_lost:
            continue
        try:
            await asyncio.wait_for(listener.wake.wait(), HEARTBEAT_SECONDS)
        except TimeoutError:
            yield "event: alive\ndata: {}\n\n"
