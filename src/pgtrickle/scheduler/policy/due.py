"""Decides which stream tables to refresh now, in which order, and when to check the others again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import assert_never

from pgtrickle.model.stream_table import Status, StreamTableId
from pgtrickle.model.tier import Tier
from pgtrickle.scheduler.policy.candidate import Candidate
from pgtrickle.scheduler.policy.cron import Cron
from pgtrickle.scheduler.policy.graph import Graph
from pgtrickle.scheduler.policy.pacing import next_cron_moment, next_refresh_at
from pgtrickle.scheduler.policy.schedule import Calculated, Every, Manual

__all__ = ["Candidate", "due", "is_held_back", "may_run", "next_check"]

# how often to check a table that waits for changes and not for the clock
CHECK_INTERVAL = timedelta(seconds=1)
# how often a table without an interval compares its sources, since comparing reads them completely
COMPARE_INTERVAL = timedelta(minutes=1)


def due(candidates: Sequence[Candidate], now: datetime, graph: Graph) -> tuple[StreamTableId, ...]:
    """The stream tables to refresh now, upstream before downstream.

    A table that is not in the graph yet waits for the next graph. An interval says how old the result may
    get, so a table with one is due only if there is work. A cron schedule says when to refresh, so it is
    kept even if nothing has changed; that refresh only records that there was nothing to do.
    """
    known = {candidate.id: candidate for candidate in candidates}
    chosen: dict[StreamTableId, None] = {}
    for table in graph.sorted(known):
        # what an upstream table commits now is a pending change by the time its reader is refreshed
        is_fed = not chosen.keys().isdisjoint(graph.upstream(table))
        if _is_due(known[table], now, is_fed=is_fed):
            chosen[table] = None
    return tuple(chosen)


def next_check(candidate: Candidate, now: datetime) -> datetime | None:
    """The earliest moment at which time alone may make the table due; None if it never does."""
    if not may_run(candidate):
        return None
    if candidate.retry_at is not None and candidate.retry_at > now:
        return candidate.retry_at
    if candidate.tier is Tier.FROZEN:
        return None
    if candidate.status is Status.INITIALIZING:
        return now + CHECK_INTERVAL
    match candidate.schedule:
        case Manual():
            return None
        case Calculated() | Every():
            moments = [next_refresh_at(candidate, now)]
            if candidate.compares and isinstance(candidate.schedule, Calculated):
                moments.append(_next_comparison(candidate, now))
            # the interval has passed: work is pending, or will be due as soon as it arrives
            return min(moment if moment > now else now + _patience(candidate) for moment in moments)
        case Cron():
            moment = next_cron_moment(candidate, candidate.schedule, now)
            return moment if moment > now else now + CHECK_INTERVAL
        case _:
            assert_never(candidate.schedule)


def may_run(candidate: Candidate) -> bool:
    """Whether time can ever make it due. A closed gate, or an error without a retry, needs a person."""
    if candidate.is_gated:
        return False
    match candidate.status:
        case Status.SUSPENDED:
            return False
        case Status.ERROR:
            return candidate.retry_at is not None
        case Status.INITIALIZING | Status.ACTIVE:
            return True
        case _:
            assert_never(candidate.status)


def is_held_back(candidate: Candidate, now: datetime) -> bool:
    """Whether it is waiting for a retry after a failure."""
    return candidate.retry_at is not None and now < candidate.retry_at


def _is_due(candidate: Candidate, now: datetime, *, is_fed: bool) -> bool:
    if candidate.refresh_requested and not candidate.is_gated and candidate.status is not Status.SUSPENDED:
        # a request is answered now, even if the last attempt failed
        return True
    if not may_run(candidate) or is_held_back(candidate, now):
        return False
    if candidate.tier is Tier.FROZEN:
        return False
    if candidate.status is Status.INITIALIZING:
        return True
    owes_load = candidate.needs_reinit or not candidate.is_populated
    has_work = candidate.has_pending_changes or is_fed or owes_load
    is_retry = candidate.status is Status.ERROR
    match candidate.schedule:
        case Manual():
            return False
        case Calculated():
            compares = candidate.compares and _next_comparison(candidate, now) <= now
            return is_retry or ((has_work or compares) and next_refresh_at(candidate, now) <= now)
        case Every():
            has_reason = has_work or candidate.always or candidate.compares
            return is_retry or (has_reason and next_refresh_at(candidate, now) <= now)
        case Cron():
            # also without changes: a change that comes later waits for the following moment
            return is_retry or next_cron_moment(candidate, candidate.schedule, now) <= now
        case _:
            assert_never(candidate.schedule)


def _next_comparison(candidate: Candidate, now: datetime) -> datetime:
    last = candidate.last_refresh_at
    return now if last is None else last + COMPARE_INTERVAL * candidate.tier.factor


def _patience(candidate: Candidate) -> timedelta:
    schedule = candidate.schedule
    return min(schedule.interval, CHECK_INTERVAL) if isinstance(schedule, Every) else CHECK_INTERVAL
