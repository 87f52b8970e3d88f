"""A subscriber that never comes back holds back nothing past the limits that are documented."""

from __future__ import annotations

import psycopg
import pytest

from pgtrickle.catalog.feeds import prune_feeds
from pgtrickle.commands.run import RefreshEvent
from pgtrickle.scheduler.service.publication_alerts import watch_publications
from pgtrickle.scheduler.service.threshold_alerts import AlertLimits
from tests.fixtures.waiting import eventually

pytestmark = [pytest.mark.own_server, pytest.mark.slow]


@pytest.fixture
def sales(source, app, refreshed):
    """A published stream table that keeps at most 100 changed rows for an hour."""
    orders = source("orders(id int primary key)", rows=[(1,)])
    app.execute(
        "select pgtrickle.create_stream_table('sales', 'select id from orders', schedule => null,"
        " refresh_mode => 'FULL', keep_changes => '1h 100 rows')"
    )
    refreshed("sales")
    app.execute("select pgtrickle.stream_table_to_publication('sales')")
    return orders


def kept(admin: psycopg.Connection) -> int:
    row = admin.execute("select count(*) from pgtrickle.pgt_batches").fetchone()
    assert row is not None
    return int(row[0])


def prune(connection: psycopg.Connection, admin: psycopg.Connection) -> int:
    """Prune as the sidecar does, two hours later; how many refreshes are kept."""
    admin.execute("update pgtrickle.pgt_batches set recorded_at = recorded_at - interval '2 h'")
    prune_feeds(connection)
    connection.commit()
    return kept(admin)


def write(orders, refreshed, *numbers: int) -> None:
    for number in numbers:
        orders.change(f"insert into orders values ({number})")
        refreshed("sales")


def test_kept_changes_wait_for_a_registered_subscriber(sales, slot, app, admin, connection, refreshed):
    app.execute("select pgtrickle.register_subscriber('sales', %s)", (slot,))
    write(sales, refreshed, 10, 11, 12)
    before = kept(admin)
    assert before >= 3
    # the load before the slot was created may go, what came after it is kept
    assert prune(connection, admin) >= 3
    admin.execute("select pg_replication_slot_advance(%s, pg_current_wal_lsn())", (slot,))
    write(sales, refreshed, 13)
    # the newest refresh is confirmed when the next one is recorded
    assert prune(connection, admin) <= 2


def test_a_subscriber_that_is_not_registered_holds_back_nothing(
    sales, slot, app, admin, connection, refreshed
):
    write(sales, refreshed, 10, 11, 12)
    assert prune(connection, admin) == 0


def test_a_dead_subscriber_keeps_no_more_rows_than_the_limit(sales, slot, app, admin, connection, refreshed):
    app.execute("select pgtrickle.register_subscriber('sales', %s)", (slot,))
    for start in (1000, 2000, 3000):
        sales.change(f"insert into orders select n from generate_series({start}, {start + 59}) n")
        refreshed("sales")
    prune(connection, admin)
    row = admin.execute("select sum(row_count) from pgtrickle.pgt_batches").fetchone()
    assert row is not None
    assert 60 <= row[0] <= 100
    app.execute("select pgtrickle.unregister_subscriber('sales', %s)", (slot,))
    assert prune(connection, admin) == 0


def test_a_slot_that_the_server_gave_up_is_late_for_good_and_holds_back_nothing(
    sales, slot, app, admin, connection, refreshed
):
    app.execute("select pgtrickle.register_subscriber('sales', %s)", (slot,))
    write(sales, refreshed, 10, 11)
    admin.execute("alter system set max_slot_wal_keep_size = '1MB'")
    admin.execute("select pg_reload_conf()")
    try:
        state = "select slot_state from pgtrickle.publication_status where slot = 'dead'"

        def is_lost() -> bool:
            admin.execute("create table if not exists filler(n int); insert into filler values (1)")
            admin.execute("select pg_switch_wal()")
            admin.execute("checkpoint")
            return bool(admin.execute(state).fetchone() == ("lost",))

        eventually(is_lost)
    finally:
        admin.execute("alter system reset max_slot_wal_keep_size")
        admin.execute("select pg_reload_conf()")
    events: list[RefreshEvent] = []
    for _ in range(2):
        watch_publications(connection, AlertLimits(publication_lag=1 << 50), events.append)
        connection.commit()
    (lost,) = events
    assert lost.is_warning
    assert "the server has removed log that the subscriber with slot dead needs" in (lost.note or "")
    assert prune(connection, admin) == 0
