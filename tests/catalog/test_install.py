"""Installing is harmless to repeat, upgrades what is older, and can be undone."""

from __future__ import annotations

import psycopg
import pytest

from pgtrickle import __version__
from pgtrickle.catalog.install import check_installed, install, uninstall
from pgtrickle.model.errors import CommandRefused, ConnectionFailed, NotInstalled, ReadOnlyServer
from pgtrickle.postgres.connection import check_writable, connect

pytestmark = pytest.mark.every_postgres


def test_installing_again_changes_nothing(connection, app, source):
    source("orders(id int)")
    app.execute("select pgtrickle.create_stream_table('s', 'select id from orders')")
    assert install(connection) == [f"Wrote the functions of pgtrickle {__version__}."]
    check_installed(connection)
    assert app.execute("select count(*) from pgtrickle.pgt_status()").fetchone() == (1,)
    assert app.execute("select pgtrickle.version()").fetchone() == (__version__,)


def test_an_administrator_installs_for_the_role_that_owns_it(database, connection):
    with database.connect("postgres") as admin:
        install(admin)
    row = connection.execute(
        "select count(*) from pg_proc p join pg_namespace n on n.oid = p.pronamespace"
        " where n.nspname = 'pgtrickle' and p.proowner <> 'trickle'::regrole"
    ).fetchone()
    assert row == (0,)


def test_somebody_else_may_not_install_over_it(app):
    with pytest.raises(CommandRefused, match="belongs to the role trickle"):
        install(app)


def test_a_newer_catalog_is_refused(connection):
    connection.execute("insert into pgtrickle.pgt_schema_version (version) values (99)")
    for step in (install, check_installed):
        with pytest.raises(NotInstalled, match="newer"):
            step(connection)


def test_uninstalling_leaves_ordinary_tables(connection, app, source):
    orders = source("orders(id int)", rows=[(1,)])
    app.execute("select pgtrickle.create_stream_table('s', 'select id from orders')")
    said = uninstall(connection)
    connection.commit()
    assert said[-1] == "1 stream table stays as an ordinary table."
    app.execute("insert into s values (1)")
    orders.change("insert into orders values (2)")
    assert app.execute("select count(*) from pg_trigger where tgname ~ 'pgtrickle'").fetchone() == (0,)
    assert uninstall(connection) == ["pgtrickle is not installed here; nothing was done."]
    with pytest.raises(NotInstalled, match="not installed"):
        check_installed(connection)


def test_uninstalling_can_take_the_tables_along(admin, app, source):
    source("orders(id int)")
    app.execute("select pgtrickle.create_stream_table('s', 'select id from orders')")
    assert "Dropped the table public.s." in uninstall(admin, drop_tables=True)
    assert app.execute("select to_regclass('s')").fetchone() == (None,)


def test_a_read_only_database_is_refused(connection):
    connection.execute("set default_transaction_read_only = on")
    connection.commit()
    with pytest.raises(ReadOnlyServer):
        check_writable(connection)


def test_an_unreachable_server_is_named_and_the_password_is_not():
    with pytest.raises(ConnectionFailed) as failure:
        connect("postgresql://someone:geheim@127.0.0.1:1/shop")
    assert "127.0.0.1:1" in str(failure.value)
    assert "geheim" not in str(failure.value)
    assert failure.value.__cause__ is None


def test_a_wrong_password_is_not_repeated(database):
    dsn = psycopg.conninfo.make_conninfo(database.dsn(), password="geheim", user="nobody_here")
    with pytest.raises(ConnectionFailed) as failure:
        connect(dsn)
    assert "geheim" not in str(failure.value)
