"""What the sidecar knows about every stream table between two polls of the database.

Only the thread of the loop touches it, so it needs no lock. A poll updates the stream tables that something
happened to, and only those are examined: polling ten thousand idle tables costs as much as polling ten.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from pgtrickle.model.dependency import DependencyKind
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.stream_table import RelationId, Status, StreamTableId
from pgtrickle.scheduler.policy.cron import Cron
from pgtrickle.scheduler.policy.definitions import Definitions, TableState
from pgtrickle.scheduler.policy.due import Candidate, due, is_held_back, may_run, next_check
from pgtrickle.scheduler.policy.falling_behind import Episodes
from pgtrickle.scheduler.policy.freshness import Pending
from pgtrickle.scheduler.policy.tick import Tick

BUSY_PAUSE = timedelta(milliseconds=250)
"""How long to wait before trying a stream table again that another session holds."""
REQUEST_PAUSE = timedelta(seconds=1)
"""How long a request for a table is ignored after a failed refresh: its answer is on the way."""
MANY = 200
"""Up to this many unseen transactions are remembered for a stream table; past it, only a snapshot is."""

Unseen = set[tuple[RelationId, int]] | Frontier
"""What a stream table has not seen yet: transactions that wrote to a source, or all up to a snapshot."""


@dataclass(slots=True)
class SchedulerState:
    """The state of each stream table, and which of them are being refreshed (`running`).

    The definition of those `redefining` has changed and is still being read. They wait for it, so that a
    table that was frozen before a change does not follow that change.
    """

    definitions: Definitions
    states: dict[StreamTableId, TableState]
    running: set[StreamTableId] = field(default_factory=set)
    redefining: set[StreamTableId] = field(default_factory=set)
    _behind: dict[StreamTableId, Unseen] = field(default_factory=dict)
    _behind_since: dict[StreamTableId, datetime] = field(default_factory=dict)
    _requested: frozenset[StreamTableId] = frozenset()
    _failed_at: dict[StreamTableId, datetime] = field(default_factory=dict)
    _examine: set[StreamTableId] = field(default_factory=set)
    _timers: list[tuple[datetime, StreamTableId]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._examine |= self.states.keys()

    def replace_definitions(
        self, definitions: Definitions, redefined: Mapping[StreamTableId, TableState | None]
    ) -> None:
        """Use newer definitions; None stands for a stream table that was dropped."""
        self.definitions = definitions
        for table, state in redefined.items():
            if state is None:
                self.states.pop(table, None)
                self._behind.pop(table, None)
                self._behind_since.pop(table, None)
            else:
                self.states[table] = state
        self._examine |= redefined.keys()

    def apply_tick(self, tick: Tick) -> None:
        """Update the state with what a poll found."""
        for source, transactions in tick.touched.items():
            for reader in self.definitions.readers.get(source, ()):
                self._note_unseen(
                    reader, {(source, transaction) for transaction in transactions}, tick.snapshot, tick.now
                )
        self.mark_behind(tick.refreshed_views, tick.snapshot, tick.now)
        self._failed_at = {t: at for t, at in self._failed_at.items() if tick.now - at < REQUEST_PAUSE}
        self._requested = tick.requested
        self._examine |= tick.requested
        while self._timers and self._timers[0][0] <= tick.now:
            self._examine.add(heapq.heappop(self._timers)[1])

    def mark_behind(
        self, tables: Iterable[StreamTableId], snapshot: Frontier, now: datetime | None = None
    ) -> None:
        """Note that these have unseen changes up to a snapshot; without `now`, nobody knows since when."""
        for table in tables:
            if now is not None and table not in self._behind:
                self._behind_since[table] = now
            self._behind[table] = snapshot
            self._examine.add(table)

    def take_due(self, now: datetime) -> tuple[StreamTableId, ...]:
        """The stream tables to refresh now, upstream before downstream; the others get a timer."""
        graph = self.definitions.graph
        examined = {table for table in self._examine if table in graph.nodes}
        self._examine = set()
        for table in tuple(examined):
            examined |= graph.all_downstream(table)
        candidates = {
            table: candidate
            for table in examined
            if (candidate := self._candidate(table)) is not None and not self._is_waiting_for_others(table)
        }
        chosen = [t for t in due(list(candidates.values()), now, graph) if self._can_bring(t, now)]
        for table in candidates.keys() - chosen:
            self._set_timer(candidates[table], now)
        return tuple(chosen)

    def finish(
        self,
        tables: Iterable[StreamTableId],
        states: Mapping[StreamTableId, TableState],
        left_out: Iterable[StreamTableId],
        now: datetime,
    ) -> None:
        """Note that a refresh ended with these states; those left out are held by another session."""
        later = set(left_out)
        for table in tables:
            self.running.discard(table)
            if (state := states.get(table)) is None:
                continue
            self.states[table] = state
            if state.status is Status.ERROR:
                self._failed_at[table] = now
            if table in self._behind and not self._unseen(state, self._behind[table]):
                del self._behind[table]
                self._behind_since.pop(table, None)
            if table in later:
                heapq.heappush(self._timers, (now + BUSY_PAUSE, table))
            else:
                self._examine.add(table)
                self._examine |= self.definitions.graph.downstream(table) if self._knows(table) else set()

    def examine(self, tables: Iterable[StreamTableId]) -> None:
        """Decide about these again."""
        self._examine.update(tables)

    def only_needs_reload(self, table: StreamTableId) -> bool:
        """Whether it has seen all changes and nobody waits for it, and only its state must be rebuilt."""
        state = self.states[table]
        is_behind = table in self._behind or table in self._requested
        return state.is_populated and state.needs_reinit and not is_behind

    def postpone(self, tables: Iterable[StreamTableId], now: datetime) -> None:
        """Examine these again after a short pause."""
        for table in tables:
            heapq.heappush(self._timers, (now + BUSY_PAUSE, table))

    def note_episodes(self, found: Episodes) -> None:
        """Note which tables began to fall behind and which caught up."""
        for table in (*found.begun, *found.ended):
            if table in self.states:
                self.states[table] = replace(self.states[table], is_behind=table in found.begun)

    def is_requested(self, table: StreamTableId) -> bool:
        """Whether somebody requested a refresh of it."""
        return table in self._requested

    def blocked(self, tables: Iterable[StreamTableId]) -> frozenset[StreamTableId]:
        """Those that only a person can set going again: they are suspended, or a source is gated."""
        found = (self._candidate(table) for table in tables)
        return frozenset(
            c.id for c in found if c is not None and (c.is_gated or c.status is Status.SUSPENDED)
        )

    def candidates(self, tables: Iterable[StreamTableId] | None = None) -> list[Candidate]:
        """The candidates of these stream tables, or of all."""
        found = (self._candidate(table) for table in (self.states if tables is None else tables))
        return [candidate for candidate in found if candidate is not None]

    def companions(self, table: StreamTableId) -> frozenset[StreamTableId]:
        """The tables that must be refreshed with it, because a source reaches it by two paths."""
        graph = self.definitions.graph
        return graph.all_upstream(table) if graph.is_diamond(table) else frozenset()

    def next_timer(self) -> datetime | None:
        """When the next timer fires."""
        return self._timers[0][0] if self._timers else None

    def behind(self) -> int:
        """How many stream tables have unseen changes."""
        return len(self._behind)

    def pending(self) -> dict[StreamTableId, Pending]:
        """The stream tables with unseen changes. Safe to call from any thread."""
        since = self._behind_since
        return {
            table: Pending(
                since.get(table),
                frozenset(source for source, _ in unseen) if isinstance(unseen, set) else None,
            )
            for table, unseen in self._behind.copy().items()
        }

    def _knows(self, table: StreamTableId) -> bool:
        return table in self.definitions.graph.nodes

    def _note_unseen(
        self,
        table: StreamTableId,
        transactions: set[tuple[RelationId, int]],
        snapshot: Frontier,
        now: datetime,
    ) -> None:
        state = self.states.get(table)
        if state is None or not self._unseen(state, transactions):
            return
        if table not in self._behind:
            self._behind_since[table] = now
        known = self._behind.get(table, set())
        unseen = snapshot if isinstance(known, Frontier) else known | transactions
        self._behind[table] = snapshot if isinstance(unseen, set) and len(unseen) > MANY else unseen
        self._examine.add(table)

    def _unseen(self, state: TableState, changes: Unseen) -> bool:
        """Whether a stream table in this state has not seen some of the changes."""
        if isinstance(changes, Frontier):
            ends = [end for end in (state.frontier, state.upstream_frontier) if end is not None]
            return not ends or not all(end.covers(changes) for end in ends)
        for source, transaction in changes:
            is_upstream = source in self.definitions.relations
            end = state.upstream_frontier if is_upstream else state.frontier
            if end is None or not end.sees(transaction):
                return True
        return False

    def _is_waiting_for_others(self, table: StreamTableId) -> bool:
        if table in self.running or table in self.redefining:
            return True
        return bool(self.running) and not self.running.isdisjoint(self.definitions.graph.all_upstream(table))

    def _can_bring(self, table: StreamTableId, now: datetime) -> bool:
        """Whether all its companions can be refreshed; one that waits after a failure makes the others wait.

        A requested refresh always starts: it reports the reason itself.
        """
        if table in self._requested:
            return True
        for companion in self.companions(table):
            candidate = self._candidate(companion)
            if (
                candidate is None
                or companion in self.redefining
                or not may_run(candidate)
                or is_held_back(candidate, now)
            ):
                return False
        return True

    def _set_timer(self, candidate: Candidate, now: datetime) -> None:
        """Set a timer for its next check, unless only a change of a source can make it due."""
        is_at_rest = (
            candidate.status is Status.ACTIVE and candidate.is_populated and not candidate.needs_reinit
        )
        is_timed = candidate.always or candidate.compares or isinstance(candidate.schedule, Cron)
        if is_at_rest and not (candidate.has_pending_changes or is_timed):
            return
        moment = next_check(candidate, now)
        if moment is not None:
            heapq.heappush(self._timers, (moment, candidate.id))

    def _candidate(self, table: StreamTableId) -> Candidate | None:
        state, definition = self.states.get(table), self.definitions.tables.get(table)
        if state is None or definition is None:
            return None
        if not (state.initialize or state.is_populated or table in self._requested):
            return None
        return Candidate(
            id=table,
            schedule=self.definitions.schedules[table],
            status=state.status,
            is_populated=state.is_populated,
            last_refresh_at=state.last_refresh_at,
            has_pending_changes=table in self._behind,
            retry_at=state.retry_at,
            refresh_requested=table in self._requested and table not in self._failed_at,
            needs_reinit=state.needs_reinit,
            always=state.follows_clock,
            compares=definition.reads(DependencyKind.FOREIGN_TABLE),
            data_timestamp=state.data_timestamp,
            tier=definition.asked.tier,
            recent_durations=state.recent_durations,
            is_behind=state.is_behind,
            is_gated=definition.is_gated,
        )
