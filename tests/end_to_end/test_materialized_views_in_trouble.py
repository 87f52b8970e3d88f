"""Whatever is cut off, refused or altered, a materialized view is followed again without loss."""

from __future__ import annotations

import threading

import psycopg
import pytest

from pgtrickle.model.errors import PgTrickleError, RefreshFailed, SourceChanged
from pgtrickle.model.stream_table import Action
from pgtrickle.refresh.source_copies import compare_sources
from pgtrickle.refresh.waves import refresh_waves
from tests.end_to_end.viewed import CHANGES, viewed
from tests.fixtures.databases import TRICKLE


@pytest.fixture
def shop(source):
    return viewed(source)


def test_an_aborted_refresh_loses_nothing(shop, stream_table, monkeypatch, admin):
    table = stream_table("select kind, sum(amount) as s from m group by kind", mode="DIFFERENTIAL")
    before = sorted(table.rows(), key=repr)
    shop.change(*CHANGES[0], "refresh materialized view m")

    def cut_off(engine, claim, *others):
        refresh_waves(engine, claim, *others)
        session = claim.session
        # asked of the server: through a pooler, what the driver was told at login is nobody there
        (pid,) = session.write.execute("select pg_backend_pid()").fetchone()
        admin.execute("select pg_terminate_backend(%s)", (pid,))
        session.write.execute("select 1")

    with monkeypatch.context() as patched:
        patched.setattr("pgtrickle.refresh.story.refresh_waves", cut_off)
        with pytest.raises((PgTrickleError, psycopg.Error)):
            table.refresh()
    assert sorted(table.rows(), key=repr) == before
    shop.change(*CHANGES[1], "refresh materialized view m")
    assert table.refresh().action is Action.DIFFERENTIAL
    table.equals_its_query()


def test_an_aborted_comparison_loses_nothing(shop, stream_table, connection, app):
    table = stream_table("select id, amount from m", mode="DIFFERENTIAL")
    shop.change(*CHANGES[0], "refresh materialized view m")
    connection.execute("select pgtrickle_internal.compare_source('m'::regclass)")
    connection.rollback()
    assert table.refresh().action is Action.DIFFERENTIAL
    table.equals_its_query()
    assert table.refresh().action is Action.NO_DATA


def test_comparisons_at_the_same_time_count_once(shop, stream_table, connection, connect):
    tables = [stream_table("select id, amount from m"), stream_table("select kind from m")]
    shop.change(*CHANGES[0], "refresh materialized view m")
    other = connect(TRICKLE)
    connection.execute("select pgtrickle_internal.compare_source('m'::regclass)")
    waiting = threading.Thread(
        target=other.execute, args=("select pgtrickle_internal.compare_source('m'::regclass)",)
    )
    waiting.start()
    connection.commit()
    waiting.join()
    other.commit()
    for table in tables:
        table.refresh()
        table.equals_its_query()


def test_a_view_refreshed_between_comparison_and_snapshot_is_compared_again(shop, stream_table, monkeypatch):
    table = stream_table("select m.id, k.label from m join kinds k on k.kind = m.kind", mode="DIFFERENTIAL")
    shop.change(*CHANGES[0], "refresh materialized view m")
    rounds: list[object] = []

    def and_then_refreshed(*arguments, **options):
        compare_sources(*arguments, **options)
        if not rounds:
            shop.change(*CHANGES[1], "refresh materialized view m")
        rounds.append(arguments)

    monkeypatch.setattr("pgtrickle.refresh.prepare.compare_sources", and_then_refreshed)
    assert table.refresh().action is Action.DIFFERENTIAL
    assert len(rounds) == 2
    table.equals_its_query()


def test_a_view_without_data_is_refused_and_later_followed_again(shop, stream_table, app):
    table = stream_table("select id, amount from m", mode="DIFFERENTIAL")
    app.execute("refresh materialized view m with no data")
    with pytest.raises(psycopg.Error, match="has not been populated"):
        app.execute("select pgtrickle.create_stream_table('late', 'select id from m')")
    with pytest.raises(RefreshFailed, match=r"materialized view public\.m .* not been populated") as refusal:
        table.refresh()
    assert refusal.value.hint == "refresh materialized view public.m"
    shop.change(*CHANGES[0], "refresh materialized view m")
    assert table.refresh().action is Action.DIFFERENTIAL
    table.equals_its_query()


def test_a_view_that_pgtrickle_may_not_read_is_refused_with_the_grant(shop, stream_table, app, pytestconfig):
    if pytestconfig.getoption("--cdc") == "wal":
        pytest.skip("WAL capture makes the role a member of the owner, which may read everything")
    table = stream_table("select id, amount from m")
    app.execute(f"revoke select on m from {TRICKLE}")
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match=r"may not read public\.m") as refusal:
        app.execute("select pgtrickle.create_stream_table('late', 'select id from m')")
    assert refusal.value.diag.message_hint == "grant select on public.m to trickle"
    shop.change(*CHANGES[0], "refresh materialized view m")
    with pytest.raises(RefreshFailed, match="permission denied") as failure:
        table.refresh()
    assert "grant select on public.m" in str(failure.value.hint)
    app.execute(f"grant select on m to {TRICKLE}")
    assert table.refresh().action is Action.DIFFERENTIAL
    table.equals_its_query()


def test_a_column_renamed_is_followed_and_a_dropped_view_is_named(shop, stream_table, app):
    renamed = stream_table("select id, amount from m")
    other = stream_table("select kind from m")
    app.execute("alter materialized view m rename column amount to price")
    shop.change(*CHANGES[0], "refresh materialized view m")
    with pytest.raises(SourceChanged, match=r"column amount of public\.m is now called price"):
        renamed.refresh()
    assert other.refresh().action is Action.DIFFERENTIAL
    other.equals_its_query()
    app.execute("drop materialized view m cascade")
    with pytest.raises(SourceChanged, match=r"materialized view public\.m was dropped"):
        other.refresh()
