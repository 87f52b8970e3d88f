"""What happens to the slot happens to the readers of its sources, and to nobody else."""

from __future__ import annotations

import psycopg
import pytest

from pgtrickle.capture.repair import capture_gaps, repair
from pgtrickle.capture.wal import store
from pgtrickle.capture.wal.sql_reader import SqlReader
from pgtrickle.model.stream_table import Action
from pgtrickle.refresh.engine import Engine
from pgtrickle.scheduler.service.slot_alerts import SlotAlerts
from tests.fixtures.databases import Database
from tests.fixtures.sources import Source
from tests.fixtures.wal import decoded_sources, hand_over
from tests.wal.conftest import WalTable


def slot_of(admin: psycopg.Connection) -> str:
    row = admin.execute(
        "select slot_name from pg_replication_slots where database = current_database()"
    ).fetchone()
    assert row is not None
    return str(row[0])


def test_a_dropped_slot_reloads_exactly_its_readers(
    full_source: Source,
    source: Source,
    wal_table: WalTable,
    engine: Engine,
    admin: psycopg.Connection,
    database: Database,
    app: psycopg.Connection,
) -> None:
    orders = full_source("orders(id int primary key, amount int)", rows=[(1, 1)])
    source("others(id int primary key, amount int)", rows=[(1, 1)])
    table = wal_table("select id, amount from orders")
    other = wal_table("select id, amount from others", cdc_mode="trigger")
    orders.change("insert into orders values (2, 2)", "insert into others values (2, 2)")
    admin.execute("select pg_drop_replication_slot(%s)", (slot_of(admin),))
    orders.change("insert into orders values (3, 3)", "update others set amount = 3")
    outcome = table.refresh()
    assert outcome.action not in {Action.DIFFERENTIAL, Action.NO_DATA}
    table.equals_its_query()
    assert other.refresh().action is Action.DIFFERENTIAL
    other.equals_its_query()
    assert decoded_sources(database) == []
    orders.change("delete from orders where id = 1")
    assert table.refresh().action is Action.DIFFERENTIAL
    admin.execute("update pgtrickle.pgt_sources set wal_retry_at = null")
    hand_over(engine)
    assert decoded_sources(database) == ["public.orders"]
    orders.change("update orders set amount = 8")
    assert table.refresh().action is Action.DIFFERENTIAL
    table.equals_its_query()


@pytest.mark.parametrize("loss", ["created again", "read by somebody else", "unpublished"])
def test_changes_that_somebody_took_away_are_noticed(
    full_source: Source, wal_table: WalTable, engine: Engine, admin: psycopg.Connection, loss: str
) -> None:
    orders = full_source("orders(id int primary key, amount int)", rows=[(1, 1)])
    table = wal_table("select id, amount from orders")
    slot = slot_of(admin)
    if loss == "unpublished":
        admin.execute("alter publication pgtrickle drop table orders")
    orders.change("insert into orders values (2, 2)")
    if loss == "created again":
        admin.execute("select pg_drop_replication_slot(%s)", (slot,))
        admin.execute("select pg_create_logical_replication_slot(%s, 'pgoutput')", (slot,))
    elif loss == "read by somebody else":
        admin.execute("select pg_replication_slot_advance(%s, pg_current_wal_lsn())", (slot,))
    else:
        admin.execute("alter publication pgtrickle add table orders")
    with engine.connection() as connection:
        gaps = capture_gaps(connection)
        assert len(gaps) == 1
        for source in gaps:
            repair(connection, source)
        connection.commit()
    assert table.refresh().action not in {Action.DIFFERENTIAL, Action.NO_DATA}
    table.equals_its_query()


@pytest.mark.parametrize("step", ["before the position", "before the commit", "before the slot advances"])
def test_a_decoder_that_dies_stores_nothing_twice(
    full_source: Source,
    wal_table: WalTable,
    engine: Engine,
    dsn: str,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    admin: psycopg.Connection,
) -> None:
    orders = full_source("orders(id int primary key, amount int)", rows=[(1, 1)])
    table = wal_table("select sum(amount) as total, count(*) as n from orders")
    orders.change("insert into orders values (2, 2)")
    orders.change("insert into orders values (3, 3)", "update orders set amount = 10 where id = 1")

    def die(*arguments: object) -> None:
        raise KeyboardInterrupt

    name = {"before the position": "_note_touched", "before the commit": "_store_position"}.get(step)
    if name is None:
        monkeypatch.setattr(SqlReader, "confirm", lambda reader, position: None)
        engine.wal.decode()
        engine.wal.close()
        engine.wal.decode()
    else:
        with monkeypatch.context() as patched:
            patched.setattr(store, name, die)
            with pytest.raises(KeyboardInterrupt):
                engine.wal.decode()
    assert table.refresh().action is Action.DIFFERENTIAL
    table.equals_its_query()
    orders.change("delete from orders where id = 2")
    assert table.refresh().action is Action.DIFFERENTIAL
    table.equals_its_query()


def test_a_slot_that_holds_back_too_much_is_given_up(
    full_source: Source, wal_table: WalTable, engine: Engine, admin: psycopg.Connection, database: Database
) -> None:
    orders = full_source("orders(id int primary key, amount int)", rows=[(1, 1)])
    table = wal_table("select id, amount from orders")
    orders.change("insert into orders select n, n from generate_series(2, 40000) n")
    alerts = SlotAlerts(warning_mb=1, most_mb=1000)
    with engine.wal.using() as connection:
        alerts.check(connection)
        alerts.check(connection)
    assert _alerts(admin) == ["slot_lag_warning"]
    alerts.most_mb = 2
    with engine.wal.using() as connection:
        alerts.check(connection)
    assert _alerts(admin) == ["slot_lag_warning", "slot_given_up"]
    assert table.refresh().action not in {Action.DIFFERENTIAL, Action.NO_DATA}
    table.equals_its_query()
    assert decoded_sources(database) == []
    hand_over(engine)
    # it does not return at once to what was too much before
    assert decoded_sources(database) == []
    orders.change("update orders set amount = 0 where id < 10")
    assert table.refresh().action is Action.DIFFERENTIAL
    table.equals_its_query()


def test_large_transactions_are_decoded_in_rounds_of_bounded_size(
    full_source: Source, wal_table: WalTable, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = full_source("orders(id int primary key, amount int)", rows=[(1, 1)])
    table = wal_table("select count(*) as n, sum(amount) as total from orders")
    engine.wal.round_messages = 50
    monkeypatch.setattr("pgtrickle.capture.wal.buffer_rows.HELD_BYTES", 1000)
    for first in range(2, 12):
        orders.change(
            f"insert into orders select n, n from generate_series({first * 100}, {first * 100 + 29}) n"
        )
    orders.change("insert into orders select n, n from generate_series(10000, 30000) n")
    orders.change("delete from orders where id < 500")
    assert table.refresh().action is Action.DIFFERENTIAL
    table.equals_its_query()


def _alerts(admin: psycopg.Connection) -> list[str]:
    rows = admin.execute("select event from pgtrickle.pgt_alerts where event like 'slot%' order by alert_id")
    return [event for (event,) in rows]
