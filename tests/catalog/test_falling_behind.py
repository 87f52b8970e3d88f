"""Falling behind is noted in the catalog, and told once whoever notices it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from pgtrickle.catalog.outcomes import Refreshed, commit_refresh
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.stream_table import Action, StreamTableId
from pgtrickle.scheduler.policy.falling_behind import Episodes
from pgtrickle.scheduler.service.falling_behind_alerts import note_episodes

pytestmark = pytest.mark.every_postgres

ONE = StreamTableId(1)
BEGUN, ENDED = Episodes((ONE,), ()), Episodes((), (ONE,))


@pytest.fixture(autouse=True)
def one(source, app):
    source("orders(id int)")
    app.execute("select pgtrickle.create_stream_table('s', 'select id from orders', '1s')")


def refreshed(connection: psycopg.Connection, action: Action, seconds: float) -> None:
    row = connection.execute("select pg_current_snapshot()::text, clock_timestamp()").fetchone()
    assert row is not None
    started = row[1] - timedelta(seconds=seconds)
    done = Refreshed(
        action,
        started,
        datetime.now(UTC),
        Frontier.parse(row[0]),
        upstream=None,
        milliseconds=seconds * 1000,
    )
    commit_refresh(connection, ONE, done)
    connection.commit()


def test_the_catalog_keeps_the_durations_of_the_latest_refreshes_with_work(connection):
    for action, seconds in (
        (Action.REINITIALIZE, 99),
        (Action.DIFFERENTIAL, 1),
        (Action.NO_DATA, 99),
        (Action.FULL, 2),
        *((Action.DIFFERENTIAL, seconds) for seconds in (3, 4, 5, 6)),
    ):
        refreshed(connection, action, seconds)
    row = connection.execute("select recent_ms from pgtrickle.pgt_stream_tables").fetchone()
    assert row is not None
    assert [round(milliseconds / 1000) for milliseconds in row[0]] == [6, 5, 4, 3, 2]


def test_an_episode_is_told_once_on_both_channels_and_again_when_it_comes_back(connection, heard):
    for found in (BEGUN, BEGUN, ENDED, ENDED, BEGUN):
        note_episodes(connection, found)
        connection.commit()
    told = heard()
    assert [(t["event"], t["stream_table"], t["schedule"]) for t in told] == [
        ("scheduler_falling_behind", "public.s", "1s")
    ] * 4


def test_a_table_in_pooler_compatibility_mode_is_not_told_of(connection, heard, app):
    app.execute("select pgtrickle.alter_stream_table('s', pooler_compatibility_mode => true)")
    note_episodes(connection, BEGUN)
    connection.commit()
    assert heard() == []


def test_a_table_that_is_being_refreshed_is_noted_later(connection, connect, heard):
    other = connect("trickle")
    other.execute("select from pgtrickle.pgt_stream_tables for no key update")
    note_episodes(connection, BEGUN)
    connection.commit()
    assert heard() == []
    other.rollback()
    note_episodes(connection, BEGUN)
    connection.commit()
    assert len(heard()) == 2
