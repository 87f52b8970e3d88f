"""Polls the database, decides what is due, and hands units to the workers, on one connection.

A dispatcher lives until its connection is lost or the sidecar stops. It never waits for a refresh or for
definitions to be read: other threads do both and report through its inbox.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from queue import Empty, SimpleQueue

from pgtrickle.capture.repair import ensure_parts
from pgtrickle.catalog.alerts import alert
from pgtrickle.catalog.identity import Installation
from pgtrickle.model.errors import ConnectionFailed, CopiedDatabase, NotInstalled, PgTrickleError
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import Status, StreamTableId
from pgtrickle.pipeline.supply import SparkChange
from pgtrickle.postgres.connection import Connection, DatabaseError
from pgtrickle.refresh.engine import Engine
from pgtrickle.scheduler.policy.cpu_budget import HeldBack, is_paced
from pgtrickle.scheduler.policy.definitions import Definitions, TableState
from pgtrickle.scheduler.policy.falling_behind import episodes
from pgtrickle.scheduler.policy.freshness import Allowance, Freshness, allowances, stale_tables
from pgtrickle.scheduler.policy.state import SchedulerState
from pgtrickle.scheduler.policy.tick import Tick
from pgtrickle.scheduler.policy.units import Unit, units
from pgtrickle.scheduler.policy.urgency import group_urgency
from pgtrickle.scheduler.service.blocked_requests import refuse_blocked
from pgtrickle.scheduler.service.budgeting import Budgeting
from pgtrickle.scheduler.service.falling_behind_alerts import note_episodes
from pgtrickle.scheduler.service.load_definitions import load_definitions
from pgtrickle.scheduler.service.pending_changes import pending_tables
from pgtrickle.scheduler.service.poll import poll
from pgtrickle.scheduler.service.unit_refresh import RefreshEvent, UnitResult, refresh_unit, spark_event
from pgtrickle.scheduler.service.vitals import Vitals
from pgtrickle.scheduler.service.wakeups import Wakeups
from pgtrickle.scheduler.service.worker_pool import WorkerPool
from pgtrickle.scheduler.service.worker_shares import WorkerShare

STALE_SECONDS = 10.0
"""A sidecar that has not polled for longer may have missed rows that were truncated, and starts over."""
MAX_AT_ONCE = 64
"""How many stream tables that wait for the CPU budget are examined for one unit."""
SLOW_MILLISECONDS = 1000.0
"""A stream table whose last refresh took longer is a unit of its own."""


@dataclass(frozen=True, slots=True)
class Redefined:
    """Definitions that were read again; None for stream tables that were dropped."""

    definitions: Definitions
    states: dict[StreamTableId, TableState | None]


@dataclass(frozen=True, slots=True)
class Behind:
    """Stream tables that have unseen changes up to a snapshot."""

    tables: frozenset[StreamTableId]
    snapshot: Frontier


@dataclass(frozen=True, slots=True)
class _Submitted:
    """Who asked for a unit that workers have, and when they got it."""

    initiated_by: str
    at: float = field(default_factory=time.perf_counter)


@dataclass(slots=True)
class Dispatcher:
    """Used by the thread of the loop only. `wake` is set whenever the inbox gets a message."""

    engine: Engine
    connection: Connection
    on_event: Callable[[RefreshEvent], None]
    vitals: Vitals
    worker_pool_size: int
    max_errors: int
    wake: threading.Event
    share: WorkerShare | None = None
    """The part of the workers that this database has, if several databases share them."""
    budget: Budgeting | None = None
    """The CPU time of the process; None is no limit."""
    is_enabled: bool = True
    wakeups: Wakeups = field(default_factory=Wakeups)
    on_comparisons: Callable[[], None] = lambda: None
    on_previews: Callable[[], None] = lambda: None
    loading: Mapping[StreamTableId, RelationName] = field(default_factory=dict)
    """The stream tables that are being loaded now. It is replaced, never changed: other threads read it."""
    loads: Mapping[str, object] | None = None
    """How far they are, for the vitals."""
    seen: Frontier | None = None
    _inbox: SimpleQueue[UnitResult | Redefined | Behind | SparkChange | PgTrickleError] = field(
        default_factory=SimpleQueue
    )
    _state: SchedulerState = field(init=False)
    _workers: WorkerPool = field(init=False)
    _submitted: dict[Unit, _Submitted] = field(default_factory=dict)
    _milliseconds: dict[StreamTableId, float] = field(default_factory=dict)
    _polled_at: float = field(init=False)
    _now: datetime = field(init=False)
    _installation: Installation = field(init=False)
    _active_at: float = field(default_factory=time.monotonic)
    _is_draining: bool = False
    _allowances: tuple[Definitions | None, Mapping[StreamTableId, Allowance]] = (None, {})
    _redefining: threading.Thread | None = None
    _held: HeldBack = field(default_factory=HeldBack)
    _paced: set[Unit] = field(default_factory=set)
    _to_redefine: set[StreamTableId] = field(default_factory=set)

    def __post_init__(self) -> None:
        # a poll reads the tables that writers touch, so they must exist
        ensure_parts(self.connection)
        # polls notice changes from here on; the buffers are asked for those before
        tick = poll(self.connection, None, has_views=False)
        assert tick.installation is not None
        self._installation = tick.installation
        self.engine.has_moved(tick.installation)
        definitions, states = load_definitions(self.connection)
        self.is_enabled = tick.is_enabled
        self._state = SchedulerState(Definitions.of(definitions.values()), states)
        self._state.mark_behind(*pending_tables(self.connection, self._state.definitions))
        self.seen, self._now, self._polled_at = tick.snapshot, tick.now, time.monotonic()
        self._workers = WorkerPool(self.worker_pool_size, self._work, self._clock, self.share)
        self.engine.supply.listen(self.report)

    @property
    def definitions(self) -> Definitions:
        """The stream tables as they are known now."""
        return self._state.definitions

    def tick(self) -> None:
        """Read the inbox, poll once, and give the workers what is due."""
        with self.engine.tracer.span("tick"):
            self._read_inbox()
            self._poll()
            self._dispatch()
            self._note_loading()

    def handle_inbox(self) -> None:
        """The same without a poll: a message may have made something due."""
        self._read_inbox()
        self._dispatch()

    def seconds_since_poll(self) -> float:
        """How long ago the last poll was."""
        return time.monotonic() - self._polled_at

    def seconds_to_timer(self, most: float) -> float:
        """Seconds until time alone may make something due, at most `most`."""
        timer = self._state.next_timer()
        return most if timer is None else max(0.0, min(most, (timer - self._clock()).total_seconds()))

    def is_idle(self) -> bool:
        """Whether nothing is running, queued or in the inbox."""
        return self._inbox.empty() and not self._state.running and self._redefining is None

    def quiet_seconds(self) -> float:
        """For how long nothing has happened; 0 while something runs or waits."""
        if not self.is_idle() or self._state.behind():
            return 0.0
        return time.monotonic() - self._active_at

    def refreshing(self) -> list[str]:
        """The stream tables that are being refreshed. Safe to call from any thread."""
        known = self.definitions.tables
        return [str(known[t].name) for unit in self._workers.running() for t in unit.tables if t in known]

    def workload(self) -> dict[str, int]:
        """The number of workers, of busy workers, and of queued units."""
        workers = self._workers
        return {"workers": workers.limit, "busy": workers.busy(), "queued": workers.queued()}

    def behind(self) -> int:
        """How many stream tables have unseen changes."""
        return self._state.behind()

    def freshness(self) -> list[Freshness]:
        """The stream tables that do not show everything. Safe to call from any thread."""
        state = self._state
        return list(stale_tables(self.allowances(), state.states.copy(), state.pending(), self._clock()))

    def allowances(self) -> Mapping[StreamTableId, Allowance]:
        """How old each stream table may become. Safe to call from any thread."""
        known, allowed = self._allowances
        if known is not self.definitions:
            known = self.definitions
            allowed = allowances(known)
            self._allowances = known, allowed
        return allowed

    def statuses(self) -> Counter[Status]:
        """How many stream tables have each status. Safe to call from any thread."""
        return Counter(state.status for state in self._state.states.copy().values())

    def report(self, message: Redefined | Behind | UnitResult | SparkChange | PgTrickleError) -> None:
        """Put a message into the inbox, from any thread."""
        self._inbox.put(message)
        self.wake.set()

    def close(self, timeout: float | None = None) -> bool:
        """Start nothing more and wait for running units; returns whether they ended in time."""
        self.engine.supply.unlisten(self.report)
        return self._workers.close(timeout)

    def _clock(self) -> datetime:
        return self._now + timedelta(seconds=self.seconds_since_poll())

    def _poll(self) -> None:
        if self.seconds_since_poll() > STALE_SECONDS:
            raise ConnectionFailed(
                "the sidecar has not polled the database for too long",
                hint="the sidecar reconnects by itself",
            )
        started = time.perf_counter()
        tick = poll(self.connection, self.seen, has_views=self.definitions.has_views)
        self.seen, self._now, self._polled_at = tick.snapshot, tick.now, time.monotonic()
        self._is_draining, self.is_enabled = tick.is_draining, tick.is_enabled
        if tick.has_news:
            self._active_at = time.monotonic()
        self._check_installation(tick)
        if self.budget is not None:
            upstream = self.definitions.relations
            self.budget.note_poll(wrote=any(source not in upstream for source in tick.touched))
        self.engine.notice_generation(tick.cache_generation)
        self.wakeups.note_writes(tick.touched)
        self._redefine(tick)
        self._state.apply_tick(tick)
        self._refuse_blocked(tick)
        if tick.has_comparisons:
            self.on_comparisons()
        if tick.has_previews:
            self.on_previews()
        self.vitals.note_tick((time.perf_counter() - started) * 1000)

    def _refuse_blocked(self, tick: Tick) -> None:
        """Answer requests for tables that no refresh will start for."""
        blocked = tick.requested if tick.is_draining else self._state.blocked(tick.requested)
        if blocked:
            refuse_blocked(self.connection, blocked)

    def _check_installation(self, tick: Tick) -> None:
        """Raise if this is another server, whose transaction ids may differ, or a copy of the database."""
        if tick.installation == self._installation:
            return
        assert tick.installation is not None
        self.engine.has_moved(tick.installation)
        raise ConnectionFailed(
            "the address now leads to another server, or to a promoted standby",
            hint="the sidecar reconnects by itself",
        )

    def _read_inbox(self) -> None:
        while True:
            try:
                message = self._inbox.get_nowait()
            except Empty:
                return
            match message:
                case UnitResult():
                    self._finish(message)
                case Redefined():
                    self._redefining = None
                    self._state.replace_definitions(message.definitions, message.states)
                    self._state.redefining -= message.states.keys() - self._to_redefine
                case Behind():
                    self._state.mark_behind(message.tables, message.snapshot)
                case SparkChange():
                    self._tell_of_spark(message)
                case PgTrickleError():
                    raise message

    def _tell_of_spark(self, change: SparkChange) -> None:
        """Report it once, as an event and as an alert."""
        alert(self.connection, "spark_lost" if change.lost else "spark_returned", message=change.text)
        self.on_event(spark_event(change))

    def _finish(self, done: UnitResult) -> None:
        self._active_at = time.monotonic()
        self._submitted.pop(done.unit, None)
        if self.budget is not None:
            self.budget.usage.note_statements(done.statement_ms / 1000)
        for table in done.unit.tables:
            definition = self.definitions.tables.get(table)
            if definition is not None and definition.name in done.milliseconds:
                self._milliseconds[table] = done.milliseconds[definition.name]
        self._state.finish(done.unit.tables, done.states, done.left_out, self._clock())
        found = episodes(self._state.candidates(done.unit.tables))
        note_episodes(self.connection, found)
        self._state.note_episodes(found)

    def _dispatch(self) -> None:
        if self._is_draining:
            return
        now = self._clock()
        chosen = self._state.take_due(now)
        held = self._hold_back(chosen)
        if chosen:
            self._start([table for table in chosen if table not in held], now)
        self._start_held_back(now)

    def _hold_back(self, chosen: Sequence[StreamTableId]) -> set[StreamTableId]:
        """Those of the chosen ones that wait for the CPU budget."""
        if self.budget is None or not chosen:
            return set()
        if self.budget.budget.is_idle and not self._held:
            return set()
        paced = {candidate.id for candidate in self._state.candidates(chosen) if is_paced(candidate)}
        self._held.add((table for table in chosen if table in paced), time.monotonic())
        return paced

    def _start_held_back(self, now: datetime) -> None:
        """Start stream tables that wait for the budget as far as it goes, those that wait longest first."""
        while self._held and self._may_start_held_back():
            first = self._held.first(MAX_AT_ONCE)
            self._state.examine(first)
            due = set(self._state.take_due(now))
            chosen = [table for table in first if table in due]
            # what is not due any more is examined again when something happens to it
            self._held.release((table for table in first if table not in due), time.monotonic())
            self._start([table for table in due if table not in first], now)
            if not chosen:
                continue
            together = self._units(chosen)
            started = next((unit for unit in together if chosen[0] in unit.tables), together[0])
            self._held.release(started.tables, time.monotonic())
            self._paced.add(replace(started, after=()))
            self._submit([replace(started, after=())], now)

    def _may_start_held_back(self) -> bool:
        if self.budget is None:
            return False
        return self.budget.budget.may_start(self._paced_units(), self._held.waited(time.monotonic()))

    def _paced_units(self) -> int:
        """How many units of paced stream tables run."""
        self._paced &= self._submitted.keys()
        return len(self._paced)

    def _units(self, chosen: Sequence[StreamTableId]) -> list[Unit]:
        return units(tuple(chosen), self.definitions.graph, slow=self._slow(tuple(chosen)))

    def _start(self, chosen: Sequence[StreamTableId], now: datetime) -> None:
        if chosen:
            self._submit(self._units(chosen), now)

    def _submit(self, chosen: Sequence[Unit], now: datetime) -> None:
        submitted = []
        for unit in chosen:
            if self._waits_for_spark(unit):
                self._state.postpone(unit.tables, now)
                continue
            self._state.running.update(unit.tables)
            is_asked = any(map(self._state.is_requested, unit.tables))
            self._submitted[unit] = _Submitted("manual" if is_asked else "scheduler")
            submitted.append((unit, group_urgency(self._state.candidates(unit.tables), now)))
        self._workers.submit(submitted)

    def cpu(self) -> dict[str, float]:
        """The CPU budget, and how long stream tables wait for it, for the vitals."""
        if self.budget is None:
            return {}
        return {**self.budget.report(), "paced_seconds": round(self._held.pace(time.monotonic()), 1)}

    def _note_loading(self) -> None:
        state, definitions = self._state, self.definitions.tables
        self.loading = {
            table: definitions[table].name
            for table in sorted(state.running)
            if table in definitions and table in state.states and state.states[table].owes_load
        }

    def _waits_for_spark(self, unit: Unit) -> bool:
        """Whether a unit needs Spark while there is none, or while its tables must not use it."""
        supply = self.engine.supply
        if supply.why_waiting is not None and any(map(self.engine.needs_spark, unit.tables)):
            return True
        return all(
            self.engine.is_isolated(table) and self._state.only_needs_reload(table) for table in unit.tables
        )

    def _slow(self, tables: tuple[StreamTableId, ...]) -> set[StreamTableId]:
        """Those that load all of their rows, whose last refresh took long, or that wait for Spark."""
        states, has_spark = self._state.states, self.engine.supply.why_waiting is None
        return {
            table
            for table in tables
            if states[table].owes_load
            or self._milliseconds.get(table, 0.0) >= SLOW_MILLISECONDS
            or (not has_spark and self.engine.needs_spark(table))
        }

    def _work(self, unit: Unit) -> None:
        """Run in a thread of the worker pool."""
        try:
            found = self._submitted.get(unit) or _Submitted("scheduler")
            self.report(
                refresh_unit(
                    self.engine,
                    unit,
                    found.initiated_by,
                    self.on_event,
                    self.vitals,
                    self.max_errors,
                    found.at,
                )
            )
        except (ConnectionFailed, CopiedDatabase, NotInstalled) as refusal:
            self.report(refusal)
        except Exception as error:
            # the loop must know, or these tables would count as running for ever
            broken = ConnectionFailed(
                f"a worker failed: {type(error).__name__}: {error}", hint="the sidecar reconnects by itself"
            )
            broken.__cause__ = error
            self.report(broken)

    def _redefine(self, tick: Tick) -> None:
        """Read changed definitions in a thread of their own."""
        if tick.is_all_redefined:
            self._to_redefine |= self.definitions.tables.keys()
        self._to_redefine |= tick.redefined
        self._state.redefining |= tick.redefined
        if self._to_redefine and self._redefining is None:
            ids, self._to_redefine = frozenset(self._to_redefine), set()
            self._redefining = threading.Thread(
                target=self._read_definitions, args=(ids, self.definitions), name="definitions", daemon=True
            )
            self._redefining.start()

    def _read_definitions(self, ids: frozenset[StreamTableId], known: Definitions) -> None:
        try:
            with self.engine.connection() as connection:
                present, states = load_definitions(connection, sorted(ids))
            self.report(Redefined(known.with_changes(ids, present), {i: states.get(i) for i in ids}))
        except (DatabaseError, PgTrickleError) as error:
            self.report(
                ConnectionFailed(
                    f"definitions cannot be read: {str(error).strip()}", hint="the sidecar tries again"
                )
            )
