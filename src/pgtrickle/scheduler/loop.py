"""The sidecar's loop: look, decide, refresh, keep order, wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pgtrickle.catalog.tables import stream_table
from pgtrickle.model.errors import (
    Busy,
    ConnectionFailed,
    PgTrickleError,
)
from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import Action, RefreshOutcome, StreamTableId
from pgtrickle.postgres.connection import Connection, DatabaseError
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.story import Failure, Result, refresh_all
from pgtrickle.scheduler.backoff import MAX_CONSECUTIVE_ERRORS
from pgtrickle.scheduler.due import due
from pgtrickle.scheduler.failing import note_failure
from pgtrickle.scheduler.falling_behind import episodes, note_episodes
from pgtrickle.scheduler.grouping import groups
from pgtrickle.scheduler.observing import Definitions, Observation, observed
from pgtrickle.scheduler.upkeep import rotate_buffers, tidy
from pgtrickle.scheduler.urgency import group_urgency

POLL_SECONDS = 0.1
"""How long a change may wait until a tick sees it."""
ROTATE_SECONDS = 2.0
TIDY_SECONDS = 30.0
RECONNECT_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class RefreshEvent:
    """Something that happened to a stream table."""

    name: RelationName
    at: datetime
    outcome: RefreshOutcome | None = None
    error: PgTrickleError | None = None


@dataclass(slots=True)
class Loop:
    """One sidecar. Any number of them may serve one database."""

    engine: Engine
    on_event: Callable[[RefreshEvent], None]
    max_errors: int = MAX_CONSECUTIVE_ERRORS
    _known: Definitions | None = None
    _rotated: float = field(default=0.0)
    _tidied: float = field(default=0.0)

    def serve(self, stop: threading.Event) -> None:
        """Tick until stopped; a lost connection is taken up again."""
        while not stop.is_set():
            try:
                self._serve(stop)
            except ConnectionFailed as lost:
                self.on_event(RefreshEvent(RelationName("", ""), datetime.now(UTC), error=lost))
                stop.wait(RECONNECT_SECONDS)

    def _serve(self, stop: threading.Event) -> None:
        with self.engine.connection() as connection:
            while not stop.is_set():
                try:
                    has_worked = self.tick(connection, stop)
                except DatabaseError as error:
                    # it may have failed because a definition changed under it
                    self._known = None
                    raise ConnectionFailed(
                        f"a tick failed: {str(error).strip()}", hint="trying again"
                    ) from error
                if not has_worked:
                    stop.wait(POLL_SECONDS)

    def tick(self, connection: Connection, stop: threading.Event) -> bool:
        """Look once, and refresh what is due; whether anything was."""
        seen = observed(connection, self._known, self.engine)
        self._known = seen.definitions
        if seen.is_draining:
            return False
        note_episodes(connection, episodes(seen.candidates))
        connection.commit()
        chosen = due(seen.candidates, seen.now, seen.definitions.graph)
        has_worked = False
        by_id = {candidate.id: candidate for candidate in seen.candidates}
        found = groups(chosen, seen.definitions.graph)
        for group in sorted(
            found, key=lambda g: group_urgency([by_id[t] for t in g if t in by_id], seen.now)
        ):
            if stop.is_set():
                break
            has_worked |= self._refreshed(connection, group, seen)
        self._keep_order(connection)
        return has_worked

    def _refreshed(self, connection: Connection, group: tuple[StreamTableId, ...], seen: Observation) -> bool:
        started, initiated_by = datetime.now(UTC), self._initiator(group, seen)
        try:
            results = refresh_all(self.engine, group, initiated_by=initiated_by, waits=False)
        except Busy:
            return False
        except PgTrickleError as error:
            results = self._all_failed(group, seen, error)
        for result in results:
            self._note(connection, result, started, initiated_by)
        return any(not isinstance(r, RefreshOutcome) or r.action is not Action.SKIP for r in results)

    def _initiator(self, group: tuple[StreamTableId, ...], seen: Observation) -> str:
        asked = {candidate.id for candidate in seen.candidates if candidate.refresh_requested}
        return "manual" if asked & set(group) else "scheduler"

    def _all_failed(
        self, group: tuple[StreamTableId, ...], seen: Observation, error: PgTrickleError
    ) -> list[Result]:
        with self.engine.connection() as connection:
            return [Failure(stream_table(connection, table), error) for table in group]

    def _note(self, connection: Connection, result: Result, started: datetime, initiated_by: str) -> None:
        now = datetime.now(UTC)
        if isinstance(result, RefreshOutcome):
            if result.action is not Action.SKIP:
                self.on_event(RefreshEvent(result.name, now, outcome=result))
            return
        if self.engine.is_abandoned:
            # it failed because it was given up, which is nobody's fault
            return
        note_failure(connection, result, started, initiated_by, self.max_errors)
        self.on_event(RefreshEvent(result.table.name, now, error=result.error))

    def _keep_order(self, connection: Connection) -> None:
        clock = time.monotonic()
        if clock - self._rotated >= ROTATE_SECONDS:
            self._rotated = clock
            rotate_buffers(connection)
        if clock - self._tidied >= TIDY_SECONDS:
            self._tidied = clock
            tidy(connection)
