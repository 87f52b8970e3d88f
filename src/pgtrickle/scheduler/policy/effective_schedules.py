"""The effective schedules of stream tables, derived from the graph.

A calculated stream table is refreshed as often as its most demanding reader needs, through all levels; more
often would be work that nobody sees. It follows its sources at once if no stream table reads it, or if one
of its readers has no interval. The members of a diamond whose tip has a `diamond_schedule_policy` share one
interval: that of the fastest or of the slowest of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

from pgtrickle.model.stream_table import StreamTableId
from pgtrickle.model.tier import Tier
from pgtrickle.scheduler.policy.graph import Graph
from pgtrickle.scheduler.policy.schedule import Calculated, Every, Schedule


class DiamondPolicy(Enum):
    """Which member decides the interval of a diamond."""

    FASTEST = "fastest"
    SLOWEST = "slowest"


@dataclass(frozen=True, slots=True)
class RequestedSchedule:
    """The schedule that was requested for one stream table, as far as it affects others."""

    schedule: Schedule
    tier: Tier = Tier.HOT
    policy: DiamondPolicy | None = None


def effective_schedules(
    asked: Mapping[StreamTableId, RequestedSchedule], graph: Graph
) -> dict[StreamTableId, Schedule]:
    """The effective schedule of each stream table, before its tier is applied."""
    diamonds = _diamond_intervals(asked, graph)
    found: dict[StreamTableId, Schedule] = {}
    for table in reversed(graph.order):
        schedule = asked[table].schedule
        if isinstance(schedule, Every):
            found[table] = Every(diamonds[table].interval) if table in diamonds else schedule
        elif isinstance(schedule, Calculated):
            needs = [
                _need(found[r], asked[r].tier) for r in graph.downstream(table) if not _is_frozen(asked[r])
            ]
            found[table] = Calculated(_interval(needs, diamonds.get(table)))
        else:
            found[table] = schedule
    return found


@dataclass(frozen=True, slots=True)
class _Diamond:
    interval: timedelta
    policy: DiamondPolicy


def _diamond_intervals(
    asked: Mapping[StreamTableId, RequestedSchedule], graph: Graph
) -> dict[StreamTableId, _Diamond]:
    """The interval of each member of a diamond that has a policy; the shortest if it is in several."""
    found: dict[StreamTableId, _Diamond] = {}
    for tip in graph.order:
        policy = asked[tip].policy
        members = graph.arms(tip) | {tip} if policy and graph.common_sources(tip) else frozenset()
        intervals = [
            schedule.interval
            for member in members
            if isinstance(schedule := asked[member].schedule, Every) and not _is_frozen(asked[member])
        ]
        if policy is None or not intervals:
            continue
        diamond = _Diamond((min if policy is DiamondPolicy.FASTEST else max)(intervals), policy)
        for member in members:
            found[member] = min(found.get(member, diamond), diamond, key=lambda known: known.interval)
    return found


def _interval(needs: list[timedelta | None], diamond: _Diamond | None) -> timedelta | None:
    """The interval of a calculated table; None if it follows at once."""
    if diamond is not None and diamond.policy is DiamondPolicy.SLOWEST:
        return diamond.interval
    if any(need is None for need in needs):
        return None
    known = [need for need in needs if need is not None] + ([diamond.interval] if diamond else [])
    return min(known, default=None)


def _need(schedule: Schedule, tier: Tier) -> timedelta | None:
    """How often a reader needs what it reads; None if at once, because that is not known."""
    if isinstance(schedule, Every | Calculated) and schedule.interval is not None:
        return schedule.interval * tier.factor
    return None


def _is_frozen(asked: RequestedSchedule) -> bool:
    return asked.tier is Tier.FROZEN
