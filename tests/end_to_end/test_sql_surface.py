"""The SQL functions with a running sidecar: from psycopg, from psql, and through a pooler."""

from __future__ import annotations

import subprocess

import psycopg
import pytest

from pgtrickle.embedded import bundled_binaries
from tests.fixtures.databases import APP
from tests.fixtures.sidecars import running
from tests.fixtures.waiting import eventually

pytestmark = pytest.mark.light


@pytest.fixture
def orders(source):
    return source("orders(id int primary key, amount int)", rows=[(1, 10), (2, 5)])


def events(connection: psycopg.Connection) -> list[str]:
    return [event for (event,) in connection.execute("select event from pgtrickle.alerts(null)")]


def one(connection: psycopg.Connection, query: str) -> tuple[object, ...]:
    row = connection.execute(query).fetchone()
    assert row is not None
    return row


def test_rows_are_appended_until_one_is_changed(orders, stream_table, app):
    table = stream_table("select id, amount from orders where amount > 0", name="log")
    app.execute("select pgtrickle.alter_stream_table('log', append_only => true)")
    orders.change("insert into orders values (3, 7), (4, -1)")
    assert table.refresh().rows_inserted == 1
    table.equals_its_query()
    orders.change("delete from orders where id = 4")
    table.refresh()
    assert one(app, "select append_only from pgtrickle.stream_tables_info") == (True,)
    orders.change("update orders set amount = 8 where id = 3", "insert into orders values (5, 1)")
    table.refresh()
    table.equals_its_query()
    assert one(app, "select append_only from pgtrickle.stream_tables_info") == (False,)
    assert events(app).count("append_only_reverted") == 1
    orders.change("delete from orders where id = 5")
    table.refresh()
    table.equals_its_query()
    assert events(app).count("append_only_reverted") == 1


def test_a_sidecar_serves_what_sql_asks_for(orders, app, engine, database, way):
    address = way(database.server, database.name, APP)
    with running(engine), psycopg.connect(address, autocommit=True, prepare_threshold=None) as client:
        eventually(lambda: one(client, "select pgtrickle_internal.is_served()") == (True,))
        client.execute(
            "call pgtrickle.create_stream_table_and_wait('totals', 'select sum(amount) as total from orders',"
            " schedule => '1s', refresh_mode => 'DIFFERENTIAL', pooler_compatibility_mode => true,"
            " tier => 'warm', on_divergence => 'stop', timeout => '2 min')"
        )
        assert one(client, "select total from totals") == (15,)
        assert one(
            client,
            "select refresh_tier, on_divergence, pooler_compatibility_mode from pgtrickle.stream_tables_info",
        ) == ("warm", "stop", True)
        client.execute(
            'select pgtrickle.bulk_create(\'[{"name": "above", "query": "select id from below"},'
            ' {"name": "below", "query": "select id from orders"}]\')'
        )
        eventually(lambda: one(client, "select count(*) from above") == (2,))
        plan = one(client, "select value from pgtrickle.explain_st('totals') where property = 'plan'")
        assert "operators, with the kind of each delta rule:" in str(plan)
        assert one(
            client,
            "select result from pgtrickle.validate_query('select sum(amount) as total from orders') limit 1",
        ) == ("DIFFERENTIAL",)
        assert "refresh_completed" in events(client)
        eventually(lambda: one(client, "select status from pgtrickle.quick_health") == ("OK",))
        assert one(client, "select count(*) from pgtrickle.health_check() where severity <> 'OK'") == (0,)


def test_an_empty_table_is_not_waited_for(orders, app, engine):
    with running(engine):
        app.execute(
            "call pgtrickle.create_stream_table_and_wait('later', 'select id from orders',"
            " initialize => false)"
        )
        assert one(app, "select is_populated from pgtrickle.stream_tables_info") == (False,)


def test_psql_reads_and_calls_them(orders, database, app):
    script = """
        \\set ON_ERROR_STOP on
        begin;
        select pgtrickle.bulk_create('[{"name": "gone", "query": "select id from orders"}]') is not null;
        select status from pgtrickle.pgt_status();
        rollback;
        select count(*) from pgtrickle.pgt_status();
        select check_name, result from pgtrickle.validate_query('select id from orders') limit 1;
        select pgtrickle.create_stream_table('kept', 'select id from orders');
        select tree_line from pgtrickle.dependency_tree();
        select scheduler_running, status from pgtrickle.quick_health;
    """
    done = subprocess.run(
        [str(bundled_binaries() / "psql"), "-XAtq", "-d", database.dsn(APP)],
        input=script,
        capture_output=True,
        text=True,
        check=True,
        env={"PGCLIENTENCODING": "UTF8"},
    )
    assert done.stdout.split("\n") == [
        "t",
        "INITIALIZING",
        "0",
        "resolved_refresh_mode|DIFFERENTIAL",
        "",
        "public.kept",
        "└── public.orders [src]",
        "f|CRITICAL",
        "",
    ]
