"""A sidecar hands sources over to the log by itself, and notices their changes without a trigger."""

from __future__ import annotations

from functools import partial

import psycopg

from pgtrickle.model.stream_table import Action
from pgtrickle.refresh.engine import Engine
from tests.fixtures.bags import assert_same_bag
from tests.fixtures.databases import Database
from tests.fixtures.sidecars import running
from tests.fixtures.sources import Source
from tests.fixtures.waiting import eventually
from tests.fixtures.wal import decoded_sources, drop_slot_by_hand

QUERY = "select amount, count(*) as n from orders group by amount"


def test_a_sidecar_hands_over_and_follows(
    full_source: Source,
    engine: Engine,
    app: psycopg.Connection,
    database: Database,
    admin: psycopg.Connection,
) -> None:
    full_source("orders(id int primary key, amount int)", rows=[(1, 10)])
    with running(engine) as sidecar:
        app.execute("select pgtrickle.create_stream_table('totals', %s, cdc_mode => 'auto')", (QUERY,))
        eventually(lambda: decoded_sources(database) == ["public.orders"])
        eventually(lambda: sidecar.has_refreshed("totals"))
        for number in range(2, 5):
            app.execute("insert into orders values (%s, 10)", (number,))
            eventually(partial(_has_orders, app, number))
        assert sidecar.has_refreshed("totals", Action.DIFFERENTIAL)
        refreshes = len(sidecar.events)
        sidecar.looks_again(10)
        # what was decoded after a snapshot does not cause another refresh
        assert len(sidecar.events) == refreshes
        drop_slot_by_hand(admin)
        app.execute("update orders set amount = 11")
        eventually(lambda: _most(app, 11) == 4)
        app.execute("select pgtrickle.alter_stream_table('totals', cdc_mode => 'trigger')")
        app.execute("insert into orders values (9, 11)")
        eventually(lambda: _most(app, 11) == 5)
        eventually(lambda: decoded_sources(database) == [])
        eventually(lambda: _slots(admin) == 0)
    assert_same_bag(app, "select * from totals", QUERY)


def _has_orders(app: psycopg.Connection, count: int) -> bool:
    return _most(app) == count


def _most(app: psycopg.Connection, amount: int = 10) -> int | None:
    row = app.execute("select n from totals where amount = %s", (amount,)).fetchone()
    return None if row is None else int(row[0])


def _slots(admin: psycopg.Connection) -> int:
    row = admin.execute(
        "select count(*) from pg_replication_slots where database = current_database()"
    ).fetchone()
    assert row is not None
    return int(row[0])
