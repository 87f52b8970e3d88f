"""How old what each stream table shows is, and how old its schedule lets it become, in seconds.

As `staleness` in SQL, but from what the sidecar knows, without a query: a change counts from the poll that
noticed it. With ten thousand stream tables behind, this takes some tens of milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from pgtrickle.model.dependency import DependencyKind
from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import RelationId, StreamTableId
from pgtrickle.model.tier import Tier
from pgtrickle.scheduler.policy.definitions import Definitions, TableState
from pgtrickle.scheduler.policy.pacing import DEFAULT_INTERVAL
from pgtrickle.scheduler.policy.schedule import Calculated, Every


class Pending(NamedTuple):
    """Since when a stream table has unseen changes, and of which sources; None if that is not known."""

    since: datetime | None
    sources: frozenset[RelationId] | None


class Allowance(NamedTuple):
    """What the definition of a stream table says about its age.

    `seconds` is how old it may become; None if it has no interval, or is frozen. `is_blind` claims that it
    has a source whose changes cannot be seen coming.
    """

    name: RelationName
    seconds: float | None
    sources: frozenset[RelationId]
    is_blind: bool


class Freshness(NamedTuple):
    """The age of the oldest change that a stream table does not show, and the sources of such changes."""

    name: RelationName
    staleness: float
    allowed: float | None
    sources: frozenset[RelationId]

    @property
    def is_late(self) -> bool:
        """Whether it is older than its schedule allows."""
        return self.allowed is not None and self.staleness > self.allowed


def allowances(definitions: Definitions) -> Mapping[StreamTableId, Allowance]:
    """What these definitions allow; it stays the same as long as they do."""
    return {
        table: Allowance(
            definition.name,
            _allowed_seconds(definitions, table),
            frozenset(relation for _, relation in definition.sources),
            definition.reads(DependencyKind.FOREIGN_TABLE),
        )
        for table, definition in definitions.tables.items()
    }


def stale_tables(
    allowed: Mapping[StreamTableId, Allowance],
    states: Mapping[StreamTableId, TableState],
    pending: Mapping[StreamTableId, Pending],
    now: datetime,
) -> Iterator[Freshness]:
    """The loaded stream tables that do not show everything, or whose changes cannot be seen coming."""
    for table, (name, seconds, sources, is_blind) in allowed.items():
        state = states.get(table)
        if state is None or not state.is_populated or state.data_timestamp is None:
            continue
        unseen = pending.get(table)
        is_unpredictable = is_blind or state.follows_clock or state.needs_reinit
        if unseen is None and not is_unpredictable:
            continue
        shown = state.data_timestamp
        if unseen is not None and unseen.since is not None and not is_unpredictable:
            shown = max(shown, unseen.since)
        if unseen is not None and unseen.sources is not None:
            sources = unseen.sources
        yield Freshness(name, max(0.0, (now - shown).total_seconds()), seconds, sources)


def _allowed_seconds(definitions: Definitions, table: StreamTableId) -> float | None:
    tier = definitions.tables[table].asked.tier
    if tier is Tier.FROZEN:
        return None
    match definitions.schedules[table]:
        case Every(asked):
            return (asked * tier.factor).total_seconds()
        case Calculated(needed):
            return ((DEFAULT_INTERVAL if needed is None else needed) * tier.factor).total_seconds()
        case _:
            return None
