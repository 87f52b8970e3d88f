"""What the demonstration shows, collected from the sidecar's events and from the database."""

from __future__ import annotations

import statistics
import threading
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pgtrickle.commands.status import StreamTableStatus, read_table_statuses
from pgtrickle.interfaces.demo.shop import EXAMPLES, SAMPLES
from pgtrickle.model.errors import PgTrickleError
from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import Action, RefreshOutcome
from pgtrickle.postgres.connection import Connection, sql

if TYPE_CHECKING:
    from pgtrickle.commands.run import RefreshEvent

WORK = (Action.DIFFERENTIAL, Action.FULL)
"""Refreshes that followed changes, without first loads."""


@dataclass(frozen=True, slots=True)
class SampleRows:
    """A few rows of a stream table."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True)
class Overview:
    """All stream tables in one snapshot."""

    tables: Sequence[StreamTableStatus]
    rows: dict[str, int]
    samples: tuple[SampleRows, ...]


@dataclass(slots=True)
class RefreshLog:
    """Outcomes and errors by stream table. The sidecar writes while the screen reads."""

    outcomes: dict[RelationName, list[RefreshOutcome]] = field(default_factory=lambda: defaultdict(list))
    errors: list[tuple[RelationName, PgTrickleError]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def record(self, event: RefreshEvent) -> None:
        """Record an event of the sidecar."""
        with self._lock:
            if event.error is not None:
                self.errors.append((event.name, event.error))
            if event.outcome is not None:
                self.outcomes[event.name].append(event.outcome)

    def last(self, name: RelationName) -> RefreshOutcome | None:
        """The latest refresh that found changes."""
        with self._lock:
            done = [
                outcome for outcome in self.outcomes.get(name, ()) if outcome.action is not Action.NO_DATA
            ]
        return done[-1] if done else None

    def work(self, name: RelationName | None = None) -> list[RefreshOutcome]:
        """The refreshes that followed changes, of one stream table or of all."""
        with self._lock:
            chosen = [self.outcomes.get(name, [])] if name is not None else list(self.outcomes.values())
            return [outcome for outcomes in chosen for outcome in outcomes if outcome.action in WORK]


def read_overview(connection: Connection) -> Overview:
    """Read all stream tables in one snapshot."""
    with connection.transaction():
        connection.execute("set transaction isolation level repeatable read read only")
        rows = {example.name: _count(connection, example.name) for example in EXAMPLES}
        samples = tuple(_sample(connection, name, query) for name, query in SAMPLES)
        return Overview(read_table_statuses(connection), rows, samples)


def _count(connection: Connection, name: str) -> int:
    table = sql.Identifier(*name.split("."))
    row = connection.execute(sql.SQL("select count(*) from {}").format(table)).fetchone()
    return int(row[0]) if row else 0


def _sample(connection: Connection, name: str, query: str) -> SampleRows:
    cursor = connection.execute(sql.SQL(query))
    columns = tuple(column.name for column in cursor.description or ())
    return SampleRows(name, columns, tuple(cursor.fetchall()))


def median(outcomes: Sequence[RefreshOutcome]) -> float | None:
    """The median duration."""
    return statistics.median(outcome.milliseconds for outcome in outcomes) if outcomes else None


def ninety_fifth(outcomes: Sequence[RefreshOutcome]) -> float | None:
    """The 95th percentile of the durations."""
    times = sorted(outcome.milliseconds for outcome in outcomes)
    return times[min(len(times) - 1, int(len(times) * 0.95))] if times else None
