"""What happens to the slot leads to a comparison of its tables, and never to wrong rows."""

from __future__ import annotations

import psycopg
import pytest

from pgtrickle.capture.attached.log import decoding, following
from pgtrickle.capture.attached.log.server import PUBLICATION, slot_of
from pgtrickle.embedded import SUPERUSER
from pgtrickle.model.errors import AttachedFailed, Busy
from pgtrickle.model.stream_table import Action
from tests.attached.conftest import refresh_by_name
from tests.attached.log.conftest import READER, Logged

pytestmark = [pytest.mark.database, pytest.mark.slow]

QUERY = "select v, count(*) as n, sum(id) as total from crm.public.items group by v"


@pytest.fixture
def items(attached: Logged, app):
    attached.table("id int primary key, v int", "items")
    attached.app.execute("insert into items select g, g % 5 from generate_series(1, 60) g")
    app.execute("select pgtrickle.create_stream_table('grouped', %s)", (QUERY,))
    refresh_by_name(attached.engine, "grouped")
    attached.check("grouped", QUERY, "items")
    return attached


def ours(attached: Logged) -> str:
    (database,) = attached.engine.attached.list()
    return slot_of(database)


@pytest.mark.parametrize(
    "loss",
    [
        "dropped",
        *(
            pytest.param(loss, marks=pytest.mark.thorough)
            for loss in ("created again", "read by somebody else")
        ),
    ],
)
def test_a_slot_that_lacks_changes_leads_to_a_comparison(items, loss):
    items.app.execute("update items set v = 7 where id < 10")
    slot = ours(items)
    if loss == "read by somebody else":
        items.admin.execute("select pg_replication_slot_advance(%s, pg_current_wal_lsn())", (slot,))
    else:
        items.admin.execute("select pg_drop_replication_slot(%s)", (slot,))
    items.app.execute("delete from items where id = 20")
    if loss == "created again":
        items.admin.execute("select pg_create_logical_replication_slot(%s, 'pgoutput')", (slot,))
    # only the differences are changes
    assert refresh_by_name(items.engine, "grouped").action is Action.DIFFERENTIAL
    items.check("grouped", QUERY, "items")
    assert items.slots() == [slot]
    items.app.execute("update items set v = 8 where id < 5")
    assert refresh_by_name(items.engine, "grouped").action is Action.DIFFERENTIAL
    items.check("grouped", QUERY, "items")


@pytest.mark.parametrize(
    "step",
    ["_store", *(pytest.param(step, marks=pytest.mark.thorough) for step in ("_write_table", "_note"))],
)
def test_a_follower_that_dies_applies_nothing_twice(items, monkeypatch, step):
    items.app.execute("update items set v = v + 1 where id < 30")

    def die(*arguments: object, **named: object) -> None:
        raise KeyboardInterrupt

    target = decoding.Decoding if step == "_write_table" else following.LogFollowing
    with monkeypatch.context() as patched:
        patched.setattr(target, step, die)
        with pytest.raises(KeyboardInterrupt):
            items.follow()
    items.app.execute("delete from items where id > 50")
    with monkeypatch.context() as patched:
        # it is stored here, and the other server does not learn of it
        patched.setattr(following, "advance", lambda *arguments: None)
        assert refresh_by_name(items.engine, "grouped").action is Action.DIFFERENTIAL
    items.check("grouped", QUERY, "items")
    items.app.execute("insert into items values (100, 100)")
    assert refresh_by_name(items.engine, "grouped").action is Action.DIFFERENTIAL
    items.check("grouped", QUERY, "items")
    items.follow(compares=True)


def test_much_is_followed_in_rounds_of_bounded_size(items, monkeypatch):
    monkeypatch.setattr(following, "ROUND_MESSAGES", 100)
    monkeypatch.setattr(decoding, "HELD_BYTES", 20_000)
    for first in range(1, 9):
        items.app.execute(f"insert into items select {first} * 100 + g, g % 7 from generate_series(1, 40) g")
        items.app.execute("update items set v = v + 1 where id % 3 = 0")
        items.app.execute("update items set id = -id where id % 11 = 0")
    items.app.execute("delete from items where id % 4 = 0")
    assert refresh_by_name(items.engine, "grouped").action is Action.DIFFERENTIAL
    items.check("grouped", QUERY, "items")
    items.follow(compares=True)


def test_a_long_transaction_holds_up_a_new_table_and_no_other(items, app, monkeypatch):
    monkeypatch.setattr("pgtrickle.capture.attached.log.server.PATIENCE_SECONDS", 0.5)
    items.table("id int primary key", "others")
    with items.database.connect("app") as long:
        long.execute("insert into items values (500, 1)")
        items.app.execute("insert into others values (1); update items set v = 9 where id = 1")
        app.execute("select pgtrickle.create_stream_table('beside', 'select id from crm.public.others')")
        with pytest.raises(Busy):
            refresh_by_name(items.engine, "beside")
        before = items.position("items")
        items.app.execute("update items set v = 10 where id = 2")
        items.follow()
        assert items.position("items") != before
        long.commit()
    refresh_by_name(items.engine, "beside")
    refresh_by_name(items.engine, "grouped")
    items.check("beside", "select id from crm.public.others", "others")
    items.check("grouped", QUERY, "items")


def test_a_server_that_is_away_loses_nothing(items):
    real = items.engine.attached.resolve
    items.engine.attached.resolve = {"customers of ours": "host=127.0.0.1 port=1 dbname=gone"}.get
    items.app.execute("delete from items where id < 3")
    with pytest.raises(AttachedFailed, match="crm cannot be followed"):
        refresh_by_name(items.engine, "grouped")
    items.engine.attached.resolve = real
    assert refresh_by_name(items.engine, "grouped").action is Action.DIFFERENTIAL
    items.app.execute("delete from items where id between 11 and 14")
    with items.database.connect(SUPERUSER, autocommit=True) as admin:
        admin.execute(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity where usename = %s", (READER,)
        )
    with pytest.raises(AttachedFailed):
        refresh_by_name(items.engine, "grouped")
    assert refresh_by_name(items.engine, "grouped").action is Action.DIFFERENTIAL
    items.check("grouped", QUERY, "items")


def test_what_is_missing_there_is_told(items, server):
    with psycopg.connect(server.dsn(), autocommit=True) as admin:
        admin.execute(f"alter role {READER} noreplication")
        try:
            items.engine.attached.close()
            with pytest.raises(AttachedFailed, match="may not use replication slots there"):
                refresh_by_name(items.engine, "grouped")
        finally:
            admin.execute(f"alter role {READER} replication")
    items.admin.execute(f"alter publication {PUBLICATION} rename to another")
    with pytest.raises(AttachedFailed, match="create publication pgtrickle_attached"):
        refresh_by_name(items.engine, "grouped")
    items.admin.execute(f"alter publication another rename to {PUBLICATION}")
    items.app.execute("delete from items where id = 30")
    refresh_by_name(items.engine, "grouped")
    items.check("grouped", QUERY, "items")


def test_a_table_whose_values_do_not_fit_here_stops_alone(items, app):
    items.admin.execute("create type mood as enum ('glad', 'sad')")
    app.execute("create type mood as enum ('glad')")
    items.table("id int primary key, m public.mood", "moods")
    app.execute(
        "select pgtrickle.create_stream_table('felt', 'select id, m::text as m from crm.public.moods')"
    )
    items.app.execute("insert into moods values (1, 'glad')")
    refresh_by_name(items.engine, "felt")
    for first in (True, False):
        items.app.execute("update moods set m = 'sad'; update items set v = v + 1 where id < 9")
        with pytest.raises(AttachedFailed, match=r"invalid input value for enum public\.mood"):
            refresh_by_name(items.engine, "felt")
        assert refresh_by_name(items.engine, "grouped").action is Action.DIFFERENTIAL
        items.check("grouped", QUERY, "items")
        if first:
            # without a slot, all tables are read anew
            items.admin.execute("select pg_drop_replication_slot(%s)", (ours(items),))
    items.app.execute("update moods set m = 'glad'")
    refresh_by_name(items.engine, "felt")
    items.check("felt", "select id, m::text as m from crm.public.moods", "moods")


def test_another_cdc_mode_is_refused(items):
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="cdc_mode cannot be 'auto'"):
        items.local.execute("select pgtrickle.attach_database('other', 'x', cdc_mode => 'auto')")
    with pytest.raises(psycopg.errors.DuplicateObject, match="attached already, with the cdc_mode wal"):
        items.local.execute("select pgtrickle.attach_database('crm', 'customers of ours')")
