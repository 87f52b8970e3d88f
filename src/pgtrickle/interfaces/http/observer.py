"""Keeps a snapshot of all stream tables for the API, and tells listeners what changes.

Refreshes of this process arrive as events, at once. Everything else is read from the catalog, at most once
per second and only while somebody is interested, so that an idle page costs the database nothing.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from datetime import UTC, datetime
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final

from pgtrickle.catalog.install import check_installed
from pgtrickle.commands.overview import read_recent, read_service_facts, read_tables
from pgtrickle.commands.status import PastRefresh
from pgtrickle.interfaces.event_log import LOG
from pgtrickle.interfaces.http.alert_feed import AlertFeed
from pgtrickle.interfaces.http.alert_text import alert_values
from pgtrickle.interfaces.http.event_hub import EventHub
from pgtrickle.interfaces.http.refresh_feed import FAILED, RefreshFeed
from pgtrickle.interfaces.http.refresh_text import event_values, past_values
from pgtrickle.interfaces.http.snapshot import Snapshot
from pgtrickle.interfaces.http.table_row import RECENT, TableRow, json_text, table_values
from pgtrickle.model.errors import ConnectionFailed, PgTrickleError
from pgtrickle.model.hints import Interface
from pgtrickle.model.stream_table import Action
from pgtrickle.postgres.connection import Connection, DatabaseError, connect

if TYPE_CHECKING:
    from pgtrickle.commands.run import RefreshEvent

LEAST_SECONDS: Final = 1.0
"""The shortest time between two reads of the catalog."""
SHARE: Final = 10.0
"""A read of the catalog is followed by a pause of at least this many times its duration."""
FRESH_SECONDS: Final = 3.0
"""How old a snapshot may be that is shown without reading the catalog first, in addition to that pause."""
INTEREST_SECONDS: Final = 15.0
"""How long a request counts as interest."""
THROTTLE_SECONDS: Final = 0.25
"""The shortest time between two events about the state of one stream table."""


class Observer:
    """One thread and one connection. All public methods may be called in any thread.

    `hides_errors` is for a role that may not see everything that the sidecar sees: it learns errors from the
    catalog, which shows a role only those that are for it.
    """

    def __init__(self, dsn: str, hub: EventHub, *, hides_errors: bool = False) -> None:
        self._dsn, self._hub, self._hides_errors = dsn, hub, hides_errors
        self._inbox: SimpleQueue[RefreshEvent | Future[Snapshot] | None] = SimpleQueue()
        self._connection: Connection | None = None
        self._snapshot: Snapshot | None = None
        self._version = 0
        self._asked_at = self._next_read = self._fresh_until = 0.0
        self._feed, self._alerts = RefreshFeed(), AlertFeed()
        self._unsent: dict[str, TableRow] = {}
        self._sent_at: dict[str, float] = {}
        self._is_stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="http observer", daemon=True)

    def start(self) -> None:
        """Start to observe."""
        self._thread.start()

    def stop(self, seconds: float) -> None:
        """Stop, within this time."""
        self._is_stopping.set()
        self._inbox.put(None)
        self._thread.join(seconds)

    def note(self, event: RefreshEvent) -> None:
        """Take in an event of the sidecar. It never waits."""
        self._inbox.put(event)

    def current(self) -> Snapshot | None:
        """The snapshot, if it is new enough to be shown. Asking keeps it new."""
        self._asked_at = time.monotonic()
        return self._snapshot if time.monotonic() < self._fresh_until else None

    def ask(self) -> Future[Snapshot]:
        """A snapshot that is read from the catalog after this call."""
        self._asked_at = time.monotonic()
        asked: Future[Snapshot] = Future()
        self._inbox.put(asked)
        return asked

    def _run(self) -> None:
        # the first read takes longest, so no visitor should wait for it; the next one is read on demand
        with suppress(Exception):
            self._read([])
        self._fresh_until = self._next_read = 0.0
        while not self._is_stopping.is_set():
            try:
                self._step()
            except Exception as error:
                # the API must survive; what failed is read again
                LOG.warning("The overview could not be updated: %s: %s", type(error).__name__, error)
                self._next_read = time.monotonic() + LEAST_SECONDS
        self._disconnect()

    def _step(self) -> None:
        asked: list[Future[Snapshot]] = []
        with suppress(Empty):
            message = self._inbox.get(timeout=self._seconds_to_wait())
            while True:
                if isinstance(message, Future):
                    asked.append(message)
                elif message is not None:
                    self._note(message)
                message = self._inbox.get_nowait()
        if self._is_stopping.is_set():
            for one in asked:
                one.cancel()
            return
        if asked or (self._is_watched() and time.monotonic() >= self._next_read):
            self._read(asked)
        self._send_rows()

    def _seconds_to_wait(self) -> float:
        """Until the next read of the catalog, or the next event that was held back."""
        due = [self._sent_at.get(name, 0.0) + THROTTLE_SECONDS for name in self._unsent]
        if self._is_watched():
            due.append(self._next_read)
        return max(0.0, min(due) - time.monotonic()) if due else LEAST_SECONDS

    def _is_watched(self) -> bool:
        return self._hub.has_listeners or time.monotonic() - self._asked_at < INTEREST_SECONDS

    def _note(self, event: RefreshEvent) -> None:
        """Take in an event: change the row of its stream table, then publish the refresh.

        In this order, a client that asks for the table after the event sees the refresh.
        """
        if not event.name.name or (event.outcome is None and event.error is None):
            return
        name, snapshot = str(event.name), self._snapshot
        has_changed = event.outcome is None or event.outcome.action is not Action.NO_DATA
        row = None if snapshot is None else snapshot.rows.get(name)
        before = row and row.state
        if snapshot is not None and row is not None:
            self._change_row(row, event)
            self._snapshot = Snapshot(self._version, datetime.now(UTC), snapshot.facts, snapshot.rows)
        if has_changed and self._feed.announce(name, event.outcome.milliseconds if event.outcome else FAILED):
            seen_by_token = not self._hides_errors
            full, public = (
                json_text(event_values(event, with_errors=seen)) for seen in (seen_by_token, False)
            )
            self._hub.publish("refresh", full, public, table=name)
        if row is not None and row.state != before:
            self._publish_counts()

    def _change_row(self, row: TableRow, event: RefreshEvent) -> None:
        self._version += 1
        self._unsent[row.name] = row
        if event.outcome is not None:
            row.note_refresh(event.outcome, event.at, self._version)
        elif event.error is not None:
            text = None if self._hides_errors else event.error.text_for(Interface.SQL)
            row.note_failure(text, event.at, self._version)
            # whether it is suspended, and when it is tried again, is in the catalog
            self._next_read = min(self._next_read, time.monotonic() + THROTTLE_SECONDS)

    def _read(self, asked: list[Future[Snapshot]]) -> None:
        """Read the catalog and answer those who wait."""
        began = time.monotonic()
        try:
            self._take_catalog(self._connected())
        except (PgTrickleError, DatabaseError) as error:
            self._disconnect()
            self._fresh_until = 0.0
            for one in asked:
                one.set_exception(error if isinstance(error, PgTrickleError) else _lost(error))
        else:
            assert self._snapshot is not None
            for one in asked:
                one.set_result(self._snapshot)
        pause = max(LEAST_SECONDS, SHARE * (time.monotonic() - began))
        self._next_read = time.monotonic() + pause
        if self._connection is not None:
            self._fresh_until = self._next_read + FRESH_SECONDS

    def _take_catalog(self, connection: Connection) -> None:
        """Replace the snapshot by what the catalog says, and publish what is new."""
        at, old = datetime.now(UTC), self._snapshot
        if old is None:
            self._feed.begin(connection)
        facts = read_service_facts(connection)
        tables = {str(table.status.name): table for table in read_tables(connection)}
        self._version += 1
        rows = {name: row for name, row in old.rows.items() if name in tables} if old else {}
        added = tables.keys() - rows.keys()
        recent = read_recent(connection, RECENT, [tables[name].id for name in added]) if added else {}
        for name, table in tables.items():
            values = table_values(table)
            if name in added:
                marks = [list(mark) for mark in recent.get(name, ())]
                rows[name] = TableRow({**values, "recent": marks, "version": self._version})
            if name in added or rows[name].take(values, self._version):
                self._unsent[name] = rows[name]
        alerts = self._alerts.new_alerts(connection)
        past = self._feed.new_refreshes(connection) if old else []
        for one in past:
            if (row := rows.get(str(one.name))) is not None and row.name not in added:
                row.note_past(one, self._version)
                self._unsent[row.name] = row
        self._snapshot = Snapshot(self._version, at, facts, rows)
        if old is None:
            self._unsent.clear()
            return
        self._publish_past(past, old.rows.keys() - rows.keys())
        for alert in alerts:
            full, public = (json_text(alert_values(alert, with_errors=seen)) for seen in (True, False))
            self._hub.publish("alert", full, public, table=alert.stream_table)
        if (old.summary(), old.facts) != (self._snapshot.summary(), facts):
            self._publish_counts()

    def _publish_past(self, past: list[PastRefresh], removed: set[str]) -> None:
        for one in past:
            full, public = (json_text(past_values(one, with_errors=seen)) for seen in (True, False))
            self._hub.publish("refresh", full, public, table=str(one.name))
        for name in sorted(removed):
            self._unsent.pop(name, None)
            self._sent_at.pop(name, None)
            self._hub.publish("removed", json_text({"name": name}), table=name)

    def _publish_counts(self) -> None:
        if self._snapshot is not None:
            self._hub.publish("counts", json_text(self._snapshot.summary()))

    def _send_rows(self) -> None:
        """Publish changed rows, each at most once in a while, so that only its newest state is sent."""
        now = time.monotonic()
        for name in [n for n in self._unsent if self._sent_at.get(n, 0.0) + THROTTLE_SECONDS <= now]:
            row = self._unsent.pop(name)
            self._sent_at[name] = now
            self._hub.publish("table", row.text(with_errors=True), row.text(with_errors=False), table=name)

    def _connected(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._connection = connect(self._dsn, autocommit=True, application_name="pgtrickle http")
            check_installed(self._connection)
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            with suppress(DatabaseError):
                self._connection.close()
            self._connection = None


def _lost(error: DatabaseError) -> ConnectionFailed:
    return ConnectionFailed(
        f"the database does not answer: {str(error).strip()}", hint="check that the server is running"
    )
