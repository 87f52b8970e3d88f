"""A running sidecar gives busy sources their triggers when it can, and repairs what somebody removed."""

from __future__ import annotations

from functools import partial

import pytest

from pgtrickle.commands.status import table_status
from pgtrickle.commands.verify import verify
from pgtrickle.model.stream_table import Status
from tests.fixtures.databases import APP
from tests.fixtures.sidecars import running
from tests.fixtures.waiting import eventually

SUMS = "select customer, sum(amount) as total from orders group by customer"


def create(app, name, query=SUMS):
    app.execute("select pgtrickle.create_stream_table(%s, %s, '1s')", (name, query))


def rows(app, name="sums"):
    return sorted(app.execute(f"select * from {name}").fetchall())


def shows(app, expected):
    return rows(app) == expected


@pytest.mark.light
def test_a_busy_source_gets_its_triggers_once_it_is_free(source, app, connect, engine, database):
    source("orders(id int primary key, customer int, amount int)", rows=[(1, 1, 10)])
    writer = connect(APP)
    writer.execute("insert into orders values (2, 1, 5)")
    create(app, "sums")
    with running(engine) as sidecar:
        eventually(lambda: "after 3 attempts" in str(table_status(database.dsn(APP), "sums").waits))
        assert table_status(database.dsn(APP), "sums").status is Status.INITIALIZING
        assert not sidecar.has_refreshed("sums")
    # whoever takes over knows what is waited for
    with running(engine) as sidecar:
        writer.execute("insert into orders values (3, 2, 7)")
        writer.commit()
        eventually(lambda: rows(app) == [(1, 15), (2, 7)])
        # the next writer that stays makes only a new query wait, not what is followed already
        writer.execute("insert into orders values (4, 2, 1)")
        create(app, "ids", "select id from orders")
        app.execute("insert into orders values (5, 2, 2)")
        eventually(lambda: rows(app) == [(1, 15), (2, 9)])
        assert "pid" in str(table_status(database.dsn(APP), "ids").waits)
        writer.commit()
        eventually(lambda: rows(app, "ids") == [(1,), (2,), (3,), (4,), (5,)])
        assert not sidecar.errors()
    assert verify(engine, "sums")


def test_a_running_sidecar_repairs_what_somebody_removes(source, app, admin, engine):
    source("orders(id int primary key, customer int, amount int)", rows=[(1, 1, 10)])
    create(app, "sums")
    relation = app.execute("select 'orders'::regclass::oid::bigint").fetchone()[0]
    with running(engine):
        eventually(lambda: rows(app) == [(1, 10)])
        number = 1
        for removal in (
            f"drop table pgtrickle_changes.changes_{relation}_0",
            f"drop function if exists pgtrickle_changes.capture_{relation} cascade",
            "drop table pgtrickle_changes.touched_0",
            "drop schema pgtrickle_state cascade",
            "drop schema pgtrickle_changes cascade",
        ):
            admin.execute(removal)
            number += 1
            app.execute("insert into orders values (%s, %s, 1)", (number, number))
            expected = [(1, 10), *((n, 1) for n in range(2, number + 1))]
            eventually(partial(shows, app, expected))
            app.execute("update orders set amount = 10 where id = 1")
