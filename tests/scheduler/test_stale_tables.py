"""A stream table is as stale as the oldest change that it does not show, and late by its schedule."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pgtrickle.model.dependency import DependencyKind
from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import RelationId, Status, StreamTableId
from pgtrickle.model.tier import Tier
from pgtrickle.scheduler.policy.definitions import Definitions, TableDefinition, TableState
from pgtrickle.scheduler.policy.effective_schedules import RequestedSchedule
from pgtrickle.scheduler.policy.freshness import Freshness, Pending, allowances, stale_tables
from pgtrickle.scheduler.policy.schedule import Calculated, Every, Manual, Schedule

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
TABLE, ORDERS, ITEMS = StreamTableId(1), RelationId(10), RelationId(11)
MINUTE = timedelta(minutes=1)


def definitions(schedule: Schedule = Every(MINUTE), tier: Tier = Tier.HOT, **more: Any) -> Definitions:  # noqa: B008
    table = TableDefinition(
        id=TABLE,
        relation=RelationId(100),
        name=RelationName("public", "sales"),
        asked=RequestedSchedule(schedule, tier, None),
        is_gated=False,
        is_atomic=True,
        sources=((DependencyKind.TABLE, ORDERS), (DependencyKind.TABLE, ITEMS)),
    )
    return Definitions.of([replace(table, **more)])


def state(**more: Any) -> TableState:
    loaded = TableState(
        status=Status.ACTIVE,
        is_populated=True,
        last_refresh_at=NOW - timedelta(hours=1),
        retry_at=None,
        needs_reinit=False,
        initialize=True,
        frontier=None,
        upstream_frontier=None,
        data_timestamp=NOW - timedelta(hours=1),
    )
    return replace(loaded, **more)


def stale(known: Definitions, found: TableState, pending: Pending | None = None) -> list[Freshness]:
    unseen = {} if pending is None else {TABLE: pending}
    return list(stale_tables(allowances(known), {TABLE: found}, unseen, NOW))


def test_without_unseen_changes_it_is_not_stale():
    assert stale(definitions(), state()) == []


def test_a_change_counts_from_when_it_was_noticed_and_names_its_source():
    (found,) = stale(definitions(), state(), Pending(NOW - timedelta(seconds=90), frozenset({ORDERS})))
    assert (found.staleness, found.allowed, found.is_late) == (90.0, 60.0, True)
    assert found.sources == {ORDERS}


def test_a_refresh_since_then_has_shown_it():
    (found,) = stale(definitions(), state(), Pending(NOW - timedelta(hours=2), None))
    assert found.staleness == 3600.0
    assert found.sources == {ORDERS, ITEMS}


@pytest.mark.parametrize("blind", [{"follows_clock": True}, {"needs_reinit": True}])
def test_what_changes_unseen_counts_from_the_last_refresh(blind):
    for unseen in (None, Pending(NOW - timedelta(seconds=1), None)):
        (found,) = stale(definitions(), state(**blind), unseen)
        assert found.staleness == 3600.0


def test_a_foreign_table_changes_unseen():
    foreign = definitions(sources=((DependencyKind.FOREIGN_TABLE, ORDERS),))
    (found,) = stale(foreign, state())
    assert found.staleness == 3600.0


def test_a_table_that_was_never_loaded_has_no_age():
    assert stale(definitions(), state(is_populated=False), Pending(NOW, None)) == []
    assert list(stale_tables(allowances(definitions()), {}, {TABLE: Pending(NOW, None)}, NOW)) == []


@pytest.mark.parametrize(
    ("schedule", "tier", "expected"),
    [
        (Every(MINUTE), Tier.HOT, 60.0),
        (Every(MINUTE), Tier.WARM, 120.0),
        (Every(MINUTE), Tier.FROZEN, None),
        (Calculated(None), Tier.HOT, 1.0),
        (Manual(), Tier.HOT, None),
    ],
)
def test_the_schedule_and_the_tier_say_how_old_it_may_become(schedule, tier, expected):
    assert allowances(definitions(schedule, tier))[TABLE].seconds == expected
