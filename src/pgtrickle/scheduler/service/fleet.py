"""Serves several databases in one process: each has a loop, an engine and connections of its own.

They share the workers, Spark, and the memory for rows. A database that is down, slow, read-only or damaged
does not hold up another one: its thread waits alone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pgtrickle.capture.attached.broker import Broker
from pgtrickle.catalog.install import check_may_serve, check_original
from pgtrickle.model.databases import ServedDatabase
from pgtrickle.model.errors import (
    ConnectionFailed,
    NotInstalled,
    PgTrickleError,
    RefreshFailed,
    TooManyDatabases,
)
from pgtrickle.postgres.addresses import address_parts
from pgtrickle.postgres.connection import DatabaseError, check_writable
from pgtrickle.refresh.engine import Engine
from pgtrickle.scheduler.service.loop import Loop, LoopState
from pgtrickle.scheduler.service.unit_refresh import SPARK, RefreshEvent, database_event
from pgtrickle.scheduler.service.worker_shares import WorkerShare, WorkerShares

FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 30.0
"""The longest pause before a database that refuses to be served is tried again."""
MOST_REPORTED: Final = 200
"""How many other databases a sidecar reports in each of them, the busy ones first."""
CANCEL_SECONDS: Final = 5.0

OnEvent = Callable[[RefreshEvent], None]
BuildLoop = Callable[[Engine, OnEvent, WorkerShare, ServedDatabase], Loop]


@dataclass(eq=False, slots=True)
class Member:
    """One database of a fleet, and the thread that serves it."""

    database: ServedDatabase
    engine: Engine
    loop: Loop
    share: WorkerShare
    stop: threading.Event = field(default_factory=threading.Event)
    why_refused: PgTrickleError | None = None
    thread: threading.Thread | None = None

    @property
    def is_removed(self) -> bool:
        """Whether pgtrickle is not installed in the database any more."""
        return isinstance(self.why_refused, NotInstalled) and type(self.why_refused) is NotInstalled

    def report(self) -> dict[str, Any]:
        """How it is doing, in numbers. Safe to call from any thread."""
        current, usage = self.loop.current, self.share.usage()
        vitals = self.loop.vitals.values()
        return {
            "database": self.database.name,
            "state": self.loop.state.value,
            "workers": self.share.limit,
            "quota": usage.quota,
            "busy": usage.used,
            "queued": current.workload()["queued"] if current is not None else 0,
            "behind": current.behind() if current is not None else None,
            "tick_ms": vitals["tick_ms"],
            "refreshes": int(vitals.get("refreshes", 0)),
            "failures": int(vitals.get("failures", 0)),
        }


class Fleet:
    """The databases of a process. Safe to use from many threads."""

    def __init__(
        self,
        build_engine: Callable[[ServedDatabase], Engine],
        build_loop: BuildLoop,
        shares: WorkerShares,
        on_event: OnEvent,
        max_databases: int,
        on_closed: Callable[[], None] = lambda: None,
        broker: Broker | None = None,
    ) -> None:
        self._build_engine, self._build_loop = build_engine, build_loop
        self._shares, self._on_event, self._max = shares, on_event, max_databases
        self._on_closed, self.broker = on_closed, broker
        self._lock = threading.Lock()
        self._members: dict[str, Member] = {}
        self.on_join: Callable[[Member], None] = lambda member: None
        self.on_leave: Callable[[Member], None] = lambda member: None

    def members(self) -> tuple[Member, ...]:
        """The databases that are served now, in the order in which they came."""
        with self._lock:
            return tuple(self._members.values())

    def serves(self, dsn: str) -> bool:
        """Whether a database at this address is served."""
        return _place(dsn) in {_place(member.database.dsn) for member in self.members()}

    def add(self, database: ServedDatabase) -> Member:
        """Serve another database; raises if there are too many."""
        with self._lock:
            if len(self._members) >= self._max:
                raise TooManyDatabases(
                    f"{database.name} is not served: this process serves {self._max} databases already,"
                    " its limit",
                    hint="raise PGTRICKLE_MAX_DATABASES, or let another process serve some of the databases",
                )
            share = self._shares.join(database.quota)
            engine = self._build_engine(database)
            loop = self._build_loop(engine, lambda event: self._pass_on(member, event), share, database)
            member = Member(database, engine, loop, share)
            loop.about_process = lambda: self._about(member)
            self._members[database.name] = member
        self.on_join(member)
        member.thread = threading.Thread(
            target=self._serve, args=(member,), name=f"database {database.name}", daemon=True
        )
        member.thread.start()
        return member

    def remove(self, name: str, *, why: str | None = None) -> None:
        """Let a database go. What runs in it is canceled, and loses nothing."""
        with self._lock:
            member = self._members.pop(name, None)
        if member is None:
            return
        self.on_leave(member)
        member.stop.set()
        member.loop.wake.set()
        # the database may be gone or hang, and nobody should wait for it
        threading.Thread(target=self._finish, args=(member,), name=f"leaving {name}", daemon=True).start()
        if why is not None:
            self._pass_on(member, database_event(note=why))

    def close(self, seconds: float) -> bool:
        """Stop serving; running refreshes finish first. Returns whether all have ended in time."""
        members = self.members()
        deadline = time.monotonic() + seconds
        for member in members:
            member.stop.set()
            member.loop.wake.set()
        for member in members:
            if member.thread is not None:
                member.thread.join(max(0.0, deadline - time.monotonic()))
        return not any(_is_alive(member) for member in members)

    def release(self) -> None:
        """Close all connections, after `close`."""
        for member in self.members():
            member.engine.close()
        self._on_closed()

    def abandon(self) -> None:
        """Cancel what still runs."""
        for member in self.members():
            if _is_alive(member):
                member.engine.abandon()

    def _serve(self, member: Member) -> None:
        pause, told = FIRST_PAUSE, ""
        while not member.stop.is_set():
            try:
                with member.engine.connection() as connection:
                    check_writable(connection)
                    # before anything in the catalog is read: its owner decides what code that runs
                    check_may_serve(connection)
                    check_original(connection)
                member.why_refused = None
                if told:
                    note = "served again"
                    self._pass_on(member, database_event(note=note))
                pause, told = FIRST_PAUSE, ""
                member.loop.serve(member.stop)
            except Exception as error:
                member.loop.state, member.why_refused = _state_after(error), _as_ours(error)
                # it stays as it is until a person acts, so it is told once
                if member.why_refused.message != told and not member.stop.is_set():
                    told = member.why_refused.message
                    self._pass_on(
                        member,
                        database_event(error=member.why_refused),
                    )
                member.stop.wait(pause)
                # settings of the database or the role take effect in new sessions
                member.engine.pool.renew()
                pause = min(2 * pause, LONGEST_PAUSE)

    def _finish(self, member: Member) -> None:
        if member.thread is not None:
            member.thread.join(CANCEL_SECONDS)
            if member.thread.is_alive():
                member.engine.pool.abandon()
                member.thread.join(CANCEL_SECONDS)
        self._shares.leave(member.share)
        member.engine.close()

    def _pass_on(self, member: Member, event: RefreshEvent) -> None:
        """Pass on an event, with its database. What happens to Spark is told once, by the process."""
        if event.subject != SPARK or event.name.name:
            self._on_event(replace(event, database=member.database.name))

    def _about(self, member: Member) -> Mapping[str, object]:
        """What a sidecar reports in one of its databases: the database itself, and numbers of the others."""
        own, current = member.report(), member.loop.current
        return {
            "quota": own["quota"],
            "state": own["state"],
            "refreshing": current.refreshing() if current is not None else [],
            "others": self._others(member),
        }

    def _others(self, member: Member) -> Sequence[Mapping[str, object]]:
        reports = [other.report() for other in self.members() if other is not member]
        reports.sort(key=lambda report: (-report["busy"], -report["queued"], report["database"]))
        return reports[:MOST_REPORTED]


def _place(dsn: str) -> tuple[object, ...]:
    parts = address_parts(dsn)
    host = parts.get("hostaddr") or parts.get("host")
    return host, str(parts.get("port") or 5432), parts.get("dbname"), parts.get("service")


def _is_alive(member: Member) -> bool:
    return member.thread is not None and member.thread.is_alive()


def _state_after(error: Exception) -> LoopState:
    is_gone = isinstance(error, (ConnectionFailed, DatabaseError))
    return LoopState.UNREACHABLE if is_gone else LoopState.REFUSED


def _as_ours(error: Exception) -> PgTrickleError:
    if isinstance(error, PgTrickleError):
        return error
    told: PgTrickleError
    if isinstance(error, DatabaseError):
        told = ConnectionFailed(
            f"the database does not answer: {str(error).strip()}", hint="it is tried again"
        )
    else:
        told = RefreshFailed(f"the database cannot be served: {type(error).__name__}: {error}")
    told.__cause__ = error
    return told
