"""Reports how far the loads of a sidecar are: as events, and in its vitals for those who wait."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime

from pgtrickle.catalog.load_progress import CopyProgress, LoadProgress, rows_to_load
from pgtrickle.model.errors import PgTrickleError
from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import StreamTableId
from pgtrickle.postgres.connection import Connection, DatabaseError
from pgtrickle.postgres.statements import load
from pgtrickle.scheduler.service.dispatcher import Dispatcher
from pgtrickle.scheduler.service.unit_refresh import RefreshEvent

STEP_SECONDS = 0.5
EVENT_SECONDS = 2.0
"""A load that takes less is not reported; others are reported this often."""


@dataclass(slots=True)
class LoadWatch:
    """Follows the stream tables that are being loaded while the dispatcher lives."""

    dispatcher: Dispatcher
    _copied: CopyProgress | None = None
    _told_at: float = 0.0
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._serve, name="loads", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop the thread and wait for it."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def step(self, connection: Connection, loading: Mapping[StreamTableId, RelationName]) -> None:
        """Measure how far these loads are, and report it; without loads, end the report."""
        if not loading:
            self._copied = None
            self._publish(connection, {}, None)
            return
        if self._copied is None:
            expected = [rows_to_load(connection, table) for table in loading]
            known = sum(rows or 0 for rows in expected) if None not in expected else None
            self._copied, self._told_at = CopyProgress(known), time.monotonic()
        progress = self._copied.poll(connection)
        self._publish(connection, loading, progress)
        if progress.rows_read and time.monotonic() - self._told_at >= EVENT_SECONDS:
            self._told_at = time.monotonic()
            self._tell(loading, progress)

    def _tell(self, loading: Mapping[StreamTableId, RelationName], progress: LoadProgress) -> None:
        first, *others = loading.values()
        along = f" with {len(others)} other{'s' if len(others) > 1 else ''}" if others else ""
        note = f"loading{along}: {progress}"
        self.dispatcher.on_event(RefreshEvent(first, datetime.now(UTC), note=note))

    def _publish(
        self,
        connection: Connection,
        loading: Mapping[StreamTableId, RelationName],
        progress: LoadProgress | None,
    ) -> None:
        report = None if progress is None else {"tables": list(loading), **asdict(progress)}
        self.dispatcher.loads = report
        connection.execute(
            load("pgtrickle.scheduler.service", "sql/publish_loads.sql"),
            {"id": self.dispatcher.vitals.id, "report": json.dumps(report)},
        )

    def _serve(self) -> None:
        was_loading = False
        while not self._stop.wait(STEP_SECONDS):
            loading = self.dispatcher.loading
            # the loop notices a lost connection; a report that is missing does no harm
            if loading or was_loading:
                with (
                    suppress(DatabaseError, PgTrickleError),
                    self.dispatcher.engine.pool.autocommitting() as connection,
                ):
                    self.step(connection, loading)
            was_loading = bool(loading)
