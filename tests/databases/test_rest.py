"""A database in which nothing happens rests: one connection, one statement a second. Anything wakes it."""

from __future__ import annotations

import psycopg
import pytest

from pgtrickle.embedded import SUPERUSER
from pgtrickle.scheduler.service import loop
from tests.fixtures.waiting import eventually

pytestmark = pytest.mark.slow


@pytest.fixture
def resting(shop, run_fleet):
    """A database at rest, and the fleet that serves it."""
    resting = shop()
    served = run_fleet(resting.served(), shop().served(), idle_after=0.3)
    resting.shows(0)
    eventually(lambda: served.state(resting) == "resting")
    return resting, served


def connections(server, shop):
    with psycopg.connect(server.dsn(), autocommit=True) as admin:
        rows = admin.execute(
            "select count(*) from pg_stat_activity where datname = %s and usename = 'trickle'", (shop.name,)
        )
        return rows.fetchall()[0][0]


def test_a_database_at_rest_has_one_connection_and_counts_as_served(resting, server):
    shop, served = resting
    eventually(lambda: connections(server, shop) <= 1)
    assert shop.app.execute("select pgtrickle_internal.is_served()").fetchone() == (True,)
    assert served.state(shop) == "resting"


def test_a_write_wakes_it(resting):
    shop, _ = resting
    shop.write(5)
    shop.shows(5)


def test_a_request_wakes_it_and_is_answered(resting):
    shop, _ = resting
    shop.app.execute("call pgtrickle.refresh_and_wait('sales', '30 s')")


def test_a_change_of_what_it_relies_on_wakes_it(resting):
    shop, _ = resting
    shop.write(2)
    shop.shows(2)
    shop.app.execute("alter table orders alter column amount type int using amount * 10")
    shop.shows(20)


def test_triggers_that_were_disabled_are_noticed(resting):
    shop, _served = resting
    shop.app.execute("alter table orders disable trigger user")
    shop.write(4)
    shop.app.execute("alter table orders enable trigger user")
    shop.shows(4)


def test_a_new_stream_table_wakes_it(resting):
    shop, _ = resting
    shop.app.execute(
        "select pgtrickle.create_stream_table('counts', 'select count(*) as n from orders', '1s', 'FULL')"
    )
    eventually(lambda: shop.app.execute("select n from counts").fetchall() == [(0,)])


def test_a_schedule_wakes_it(shop, run_fleet, monkeypatch):
    monkeypatch.setattr(loop, "AWAKE_SECONDS", 1.0)
    resting = shop()
    # longer than twice the time before a timer for which a database does not rest
    resting.app.execute("select pgtrickle.create_stream_table('clock', 'select now() as at', '5s', 'FULL')")
    served = run_fleet(resting.served(), shop().served(), idle_after=0.3)
    eventually(lambda: resting.app.execute("select at from clock").fetchone() is not None)
    eventually(lambda: served.state(resting) == "resting")
    before = resting.app.execute("select at from clock").fetchone()
    eventually(lambda: resting.app.execute("select at from clock").fetchone() > before)


def test_it_rests_again_after_it_was_woken(resting):
    shop, served = resting
    shop.write(5)
    shop.shows(5)
    eventually(lambda: served.state(shop) == "resting")
    shop.write(6)
    shop.shows(11)


def test_a_disabled_database_is_left_alone_until_it_is_enabled(resting, server):
    shop, served = resting
    with shop.database.connect(SUPERUSER, autocommit=True) as admin:
        admin.execute("select pgtrickle.set_enabled(false)")
        eventually(lambda: served.state(shop) == "disabled")
        eventually(lambda: connections(server, shop) == 0)
        shop.write(9)
        with pytest.raises(psycopg.Error, match="disabled since") as refusal:
            shop.app.execute("select pgtrickle.refresh_stream_table('sales')")
        assert "set_enabled(true)" in (refusal.value.diag.message_hint or "")
        assert admin.execute("select pgtrickle.is_enabled()").fetchone() == (False,)
        admin.execute("select pgtrickle.set_enabled(true)")
    shop.shows(9)


def test_enabling_keeps_a_drain_and_undraining_keeps_it_disabled(resting):
    shop, _ = resting
    with shop.database.connect(SUPERUSER, autocommit=True) as admin:
        admin.execute("select pgtrickle.drain()")
        admin.execute("select pgtrickle.set_enabled(false)")
        admin.execute("select pgtrickle.set_enabled(true)")
        assert admin.execute("select pgtrickle.is_drained()").fetchone() == (True,)
        admin.execute("select pgtrickle.set_enabled(false)")
        admin.execute("select pgtrickle.undrain()")
        assert admin.execute("select pgtrickle.is_enabled(), pgtrickle.is_drained()").fetchone() == (
            False,
            False,
        )
        admin.execute("select pgtrickle.set_enabled(true)")
        assert admin.execute("select count(*) from pgtrickle.pgt_drain").fetchone() == (0,)


def test_only_the_owner_of_the_database_or_of_pgtrickle_may_disable_it(resting):
    shop, _ = resting
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="owner of the database"):
        shop.app.execute("select pgtrickle.set_enabled(false)")
