"""The decision of every tick: which stream tables to refresh now, in which order, and when to look again."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import assert_never

from pgtrickle.model.stream_table import Status, StreamTableId
from pgtrickle.scheduler.graph import Graph
from pgtrickle.scheduler.schedule import Calculated, Every, Manual, Schedule

# a table that waits for changes and not for the clock is looked at this often
LOOK_AGAIN = timedelta(seconds=1)
# sources are read as a whole to be compared: without an interval of its own, a table does it this often
COMPARE_AGAIN = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Candidate:
    """What one tick knows of one stream table.

    `always` claims that the result changes with time alone, so that it is worth a refresh without changes;
    `compares`, that it reads a source of whose changes only a refresh can tell.
    """

    id: StreamTableId
    schedule: Schedule
    status: Status
    is_populated: bool
    last_refresh_at: datetime | None
    has_pending_changes: bool
    retry_at: datetime | None = None
    refresh_requested: bool = False
    needs_reinit: bool = False
    always: bool = False
    compares: bool = False


def due(candidates: Sequence[Candidate], now: datetime, graph: Graph) -> tuple[StreamTableId, ...]:
    """The stream tables to refresh now; whoever is read comes before its readers.

    A table that the graph does not know yet waits for the graph that does. One that a source reaches
    by two ways waits while something on them cannot move, for it could not move without it.
    """
    known = {candidate.id: candidate for candidate in candidates}
    stuck = {c.id for c in candidates if not _may_run(c) or _is_held_back(c, now)}
    chosen: dict[StreamTableId, None] = {}
    for table in graph.order:
        if table in known:
            # what an upstream commits in this tick is a pending change by the time its reader's turn comes
            is_fed = not chosen.keys().isdisjoint(graph.upstream(table))
            if _is_due(known[table], now, is_fed=is_fed) and not _must_wait(known[table], stuck, graph):
                chosen[table] = None
    return tuple(chosen)


def next_wake(candidates: Sequence[Candidate], now: datetime) -> datetime | None:
    """When to look again at the latest; none if time alone makes nothing due.

    Always after `now`, also when something is due: whoever holds it may need a while.
    Requests and new definitions come at any time; the loop notices those at its own pace.
    """
    moments = (_next_look(candidate, now) for candidate in candidates)
    return min((moment for moment in moments if moment is not None), default=None)


def _is_due(candidate: Candidate, now: datetime, *, is_fed: bool) -> bool:
    if not _may_run(candidate) or _is_held_back(candidate, now):
        return False
    if candidate.status is Status.INITIALIZING or candidate.refresh_requested:
        return True
    owes_load = candidate.needs_reinit or not candidate.is_populated
    has_work = candidate.has_pending_changes or is_fed or owes_load
    is_retry = candidate.status is Status.ERROR
    match candidate.schedule:
        case Manual():
            return False
        case Calculated():
            return has_work or is_retry or (candidate.compares and _has_come(candidate, COMPARE_AGAIN, now))
        case Every(interval):
            has_reason = has_work or candidate.always or candidate.compares
            return is_retry or (has_reason and _has_come(candidate, interval, now))
        case _:
            assert_never(candidate.schedule)


def _must_wait(candidate: Candidate, stuck: Set[StreamTableId], graph: Graph) -> bool:
    """Whether it would bring along tables that cannot move; whoever asked is told by a refresh."""
    if not stuck or candidate.refresh_requested or not graph.is_diamond(candidate.id):
        return False
    return not stuck.isdisjoint(graph.all_upstream(candidate.id))


def _next_look(candidate: Candidate, now: datetime) -> datetime | None:
    if not _may_run(candidate):
        return None
    if candidate.retry_at is not None and candidate.retry_at > now:
        return candidate.retry_at
    if candidate.status is Status.INITIALIZING:
        return now + LOOK_AGAIN
    match candidate.schedule:
        case Manual():
            return None
        case Calculated():
            turn = _next_turn(candidate, COMPARE_AGAIN, now)
            return min(turn, now + LOOK_AGAIN) if candidate.compares and turn > now else now + LOOK_AGAIN
        case Every(interval):
            turn = _next_turn(candidate, interval, now)
            # its turn has come: its work waits, or will be due the moment it comes
            return turn if turn > now else now + min(interval, LOOK_AGAIN)
        case _:
            assert_never(candidate.schedule)


def _may_run(candidate: Candidate) -> bool:
    """Whether time can ever make it due: an error without a time to retry needs a person."""
    match candidate.status:
        case Status.SUSPENDED:
            return False
        case Status.ERROR:
            return candidate.retry_at is not None
        case Status.INITIALIZING | Status.ACTIVE:
            return True
        case _:
            assert_never(candidate.status)


def _is_held_back(candidate: Candidate, now: datetime) -> bool:
    return candidate.retry_at is not None and now < candidate.retry_at


def _has_come(candidate: Candidate, interval: timedelta, now: datetime) -> bool:
    return _next_turn(candidate, interval, now) <= now


def _next_turn(candidate: Candidate, interval: timedelta, now: datetime) -> datetime:
    last = candidate.last_refresh_at
    return now if last is None else last + interval
