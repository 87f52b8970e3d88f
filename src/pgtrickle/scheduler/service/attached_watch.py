"""Follows attached databases while a database is served, in a thread for each: none waits for another."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from pgtrickle.catalog.alerts import alert
from pgtrickle.model.attached import AttachedDatabase
from pgtrickle.model.errors import Busy, Diverged, PgTrickleError
from pgtrickle.postgres.connection import DatabaseError
from pgtrickle.scheduler.service.dispatcher import Dispatcher
from pgtrickle.scheduler.service.slot_alerts import SlotEpisode, SlotLimits
from pgtrickle.scheduler.service.unit_refresh import database_event

LIST_SECONDS: Final = 1.0
"""How often to look for databases that were attached or detached."""
RESOLVE_SECONDS: Final = 2.0
"""How often to look for foreign tables whose origin is served."""
POLL_SECONDS: Final = 0.2
"""How long a change in another database may wait until it is noticed."""
LONGEST_PAUSE: Final = 8.0
"""The longest pause before a database that cannot be reached is tried again."""


@dataclass(slots=True)
class AttachedWatch:
    """Follows all attached databases while the dispatcher lives."""

    dispatcher: Dispatcher
    limits: SlotLimits = field(default_factory=SlotLimits)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _following: dict[str, threading.Thread] = field(default_factory=dict)

    @property
    def is_following(self) -> bool:
        """Whether any database is attached: then changes may come from elsewhere at any time."""
        return bool(self._following)

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._serve, name="attached", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop the threads; one that waits for another database is not waited for."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        for thread in self._following.values():
            thread.join(POLL_SECONDS)

    def _serve(self) -> None:
        resolved_at = float("-inf")
        while not self._stop.is_set():
            with suppress(DatabaseError, PgTrickleError):
                if time.monotonic() - resolved_at > RESOLVE_SECONDS:
                    self.dispatcher.engine.attached.adopt_origins()
                    resolved_at = time.monotonic()
                known = {database.alias for database in self.dispatcher.engine.attached.list()}
                for alias in [alias for alias, thread in self._following.items() if not thread.is_alive()]:
                    del self._following[alias]
                for alias in known - self._following.keys():
                    thread = threading.Thread(
                        target=self._follow, args=(alias,), name=f"following {alias}", daemon=True
                    )
                    self._following[alias] = thread
                    thread.start()
            self._stop.wait(LIST_SECONDS)

    def _follow(self, alias: str) -> None:
        pause, told = POLL_SECONDS, ""
        alerts = SlotEpisode(self.limits)
        while not self._stop.wait(pause):
            database = self._find(alias)
            if database is None:
                return
            try:
                if self.dispatcher.engine.attached.has_news(database):
                    done = self.dispatcher.engine.attached.follow(database)
                    if done.changes or not database.is_decoded:
                        # what has come is a change of a source
                        self.dispatcher.wake.set()
                if database.is_decoded:
                    self._check_slot(database, alerts)
                if told:
                    self._note(alias, None)
                pause, told = POLL_SECONDS, ""
            except Busy:
                pause = min(2 * pause, LONGEST_PAUSE)
            except (DatabaseError, PgTrickleError) as error:
                message = error.message if isinstance(error, PgTrickleError) else str(error).strip()
                if not isinstance(error, Diverged) and message != told:
                    told = message
                    self._note(alias, error)
                pause = min(2 * pause, LONGEST_PAUSE)

    def _check_slot(self, database: AttachedDatabase, alerts: SlotEpisode) -> None:
        """Warn if our slot there holds back much log; give it up if that is too much."""
        attached = self.dispatcher.engine.attached
        state = attached.slot_state(database)
        if state is not None and alerts.is_notable(state):
            with self.dispatcher.engine.connection() as connection:
                if alerts.check(connection, state, alias=database.alias):
                    attached.give_up_slot(database)
                connection.commit()

    def _find(self, alias: str) -> AttachedDatabase | None:
        with suppress(DatabaseError, PgTrickleError):
            return next((one for one in self.dispatcher.engine.attached.list() if one.alias == alias), None)
        return None

    def _note(self, alias: str, error: PgTrickleError | DatabaseError | None) -> None:
        """Record that a database cannot be followed, or can be again; tell it once."""
        message = None if error is None else getattr(error, "message", str(error).strip())
        with suppress(DatabaseError, PgTrickleError), self.dispatcher.engine.connection() as connection:
            connection.execute(
                "update pgtrickle.pgt_attached_databases set last_error = %s, failing_since ="
                " case when %s::text is null then null else coalesce(failing_since, clock_timestamp()) end"
                " where alias = %s",
                (message, message, alias),
            )
            if error is not None:
                alert(connection, "attached_database_failed", alias=alias)
            connection.commit()
        if isinstance(error, PgTrickleError):
            self.dispatcher.on_event(database_event(error=error))
        elif error is None:
            self.dispatcher.on_event(database_event(note=f"the attached database {alias} is followed again"))
