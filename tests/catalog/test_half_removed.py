"""Installations of which somebody has removed parts: install makes them whole, uninstall removes the rest."""

from __future__ import annotations

import pytest
from psycopg import sql

from pgtrickle.catalog.install import check_installed, install, installed_version, uninstall
from pgtrickle.catalog.remains import SCHEMAS

pytestmark = [pytest.mark.every_postgres, pytest.mark.slow]

REMOVALS = (
    "drop schema pgtrickle_internal cascade",
    "drop schema pgtrickle_changes cascade",
    "drop schema pgtrickle_state cascade",
    "drop schema pgtrickle_changes cascade; drop schema pgtrickle_state cascade",
    "drop function pgtrickle.sidecar_role() cascade",
    "drop function pgtrickle.refuse_direct_write() cascade",
    "drop function pgtrickle_internal.capture_source(oid, smallint[], interval)",
    "drop table pgtrickle.pgt_gates cascade",
    "drop table pgtrickle.pgt_dependencies cascade",
    "drop table pgtrickle.pgt_sources cascade",
    "drop table pgtrickle.pgt_schema_version cascade",
    "drop table pgtrickle.pgt_refresh_history, pgtrickle.pgt_caches, pgtrickle.pgt_waiting cascade",
    "drop table pgtrickle_changes.touched_0",
)
FORGETTING = (
    "drop schema pgtrickle cascade",
    "drop table pgtrickle.pgt_stream_tables cascade",
    "drop schema pgtrickle cascade; drop schema pgtrickle_state cascade",
)


@pytest.fixture
def orders(source, app):
    orders = source("orders(id int, amount int)", rows=[(1, 10)])
    app.execute("select pgtrickle.create_stream_table('totals', 'select sum(amount) as total from orders')")
    return orders


def remove(admin, removal):
    for statement in removal.split(";"):
        admin.execute(statement)


@pytest.mark.parametrize("removal", REMOVALS)
def test_install_makes_a_half_removed_installation_whole(orders, app, admin, connection, removal):
    remove(admin, removal)
    orders.change("insert into orders values (2, 20)")
    install(connection)
    check_installed(connection)
    kept = connection.execute("select pgt_name, status from pgtrickle.pgt_stream_tables").fetchall()
    assert kept == [("totals", "INITIALIZING")]
    gaps = connection.execute("select pgtrickle_internal.capture_gap('orders'::regclass)").fetchall()
    assert gaps == [(None,)]
    assert connection.execute("select count(*) from pgtrickle.pgt_waiting").fetchone() == (0,)
    connection.commit()
    orders.change("insert into orders values (3, 30)")
    assert connection.execute(
        "select sum(pending_rows) >= 1 from pgtrickle.change_buffer_sizes()"
    ).fetchone() == (True,)
    connection.commit()
    guards = admin.execute("select count(*) from pg_trigger where tgname = 'pgtrickle_guard'").fetchall()
    assert guards == [(1,)]
    app.execute("select pgtrickle.create_stream_table('more', 'select id from orders')")
    app.execute("select pgtrickle.drop_stream_table('totals')")
    assert install(connection)[:-1] == []


@pytest.mark.parametrize("removal", FORGETTING)
def test_install_starts_over_where_no_definitions_are_left(orders, app, admin, connection, removal):
    remove(admin, removal)
    assert any(line.startswith("Dropped what was left") for line in install(connection))
    check_installed(connection)
    # it is an ordinary table by now
    app.execute("insert into totals values (1)")
    app.execute("select pgtrickle.create_stream_table('more', 'select id from orders')")
    orders.change("insert into orders values (3, 30)")


LEFT = [*REMOVALS, *FORGETTING, "drop table totals"]


@pytest.mark.parametrize(("number", "removal"), list(enumerate(LEFT)))
def test_uninstall_removes_whatever_is_left(orders, app, admin, connection, number, removal):
    remove(admin, removal)
    # by turns as the role that owns the schemas, and as a superuser
    done = uninstall(connection if number % 2 else admin)
    assert any("every trigger of pgtrickle" in line for line in done)
    left = admin.execute("select count(*) from pg_namespace where nspname = any (%s)", (list(SCHEMAS),))
    assert left.fetchone() == (0,)
    assert admin.execute("select count(*) from pg_trigger where not tgisinternal").fetchone() == (0,)
    orders.change("insert into orders values (3, 30)")
    assert installed_version(admin) is None
    assert uninstall(admin) == ["pgtrickle is not installed here; nothing was done."]


def test_uninstall_with_the_tables_drops_only_stream_tables(orders, app, admin, connection):
    app.execute("create table innocent(id int)")
    admin.execute("drop schema pgtrickle_changes cascade")
    uninstall(admin, drop_tables=True)
    tables = admin.execute(
        sql.SQL("select relname from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'")
    ).fetchall()
    assert sorted(tables) == [("innocent",), ("orders",)]
