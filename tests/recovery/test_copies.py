"""A copy of a database is refused until it is repaired; then it is an installation of its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from pgtrickle.catalog.install import uninstall
from pgtrickle.commands import status
from pgtrickle.commands.define import create, drop
from pgtrickle.commands.explain import explain
from pgtrickle.commands.refresh import refresh
from pgtrickle.commands.repair import repair
from pgtrickle.commands.run import run
from pgtrickle.commands.verify import verify
from pgtrickle.embedded import SUPERUSER, Server
from pgtrickle.model.errors import CopiedDatabase
from tests.fixtures.databases import APP, TRICKLE, Database, create_database, create_roles, drop_database
from tests.fixtures.servers import new_server
from tests.fixtures.sidecars import running
from tests.fixtures.waiting import eventually
from tests.recovery.conftest import QUERIES, OpenShop, Shop, run_tool

REFUSED = "this database is a copy"


@pytest.fixture(scope="module")
def other_server() -> Iterator[Server]:
    """Another server, with the roles of the first."""
    with new_server(18) as server:
        create_roles(server)
        yield server


def empty_database(server: Server, name: str) -> Database:
    return create_database(server, name, "template0")


def dumped(database: Database, *options: str) -> bytes:
    return run_tool(18, "pg_dump", *options, f"--dbname={database.dsn(SUPERUSER)}")


def restored(dump: bytes, database: Database) -> None:
    """Run a dump in plain format; the first error ends it."""
    run_tool(18, "psql", "-qX", "-v", "ON_ERROR_STOP=1", "-d", database.dsn(SUPERUSER), given=dump)


def disconnect(admin: psycopg.Connection, name: str) -> None:
    admin.execute("select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = %s", (name,))


def assert_refused(copy: Shop) -> None:
    """Nothing acts, everything that reads works and says why."""
    dsn = copy.database.dsn(APP)
    asked = [
        "select pgtrickle.create_stream_table('more', 'select id from orders')",
        "select pgtrickle.alter_stream_table('totals', schedule => '1h')",
        "select pgtrickle.alter_stream_table('totals', query => 'select * from totals')",
        "select pgtrickle.drop_stream_table('regions')",
        "select pgtrickle.resume_stream_table('totals')",
        "select pgtrickle.refresh_stream_table('totals')",
        "select pgtrickle.repair_stream_table('totals')",
        "select pgtrickle.gate_source('orders')",
        "select pgtrickle.ungate_source('orders')",
        "call pgtrickle.refresh_and_wait('totals')",
    ]
    with copy.database.connect(APP, autocommit=True) as app:
        for statement in asked:
            with pytest.raises(psycopg.Error, match=REFUSED):
                app.execute(statement)
    for refused in (lambda: create(dsn, "more", "select id from orders", {}), lambda: drop(dsn, "regions")):
        with pytest.raises(CopiedDatabase, match=REFUSED):
            refused()
    engine = copy.engine
    for acting in (
        lambda: refresh(engine, "totals"),
        lambda: verify(engine, None),
        lambda: explain(engine, "totals"),
        lambda: run(engine, threading.Event()),
        copy.refresh,
    ):
        with pytest.raises(CopiedDatabase, match=REFUSED):
            acting()
    statuses = status.table_statuses(dsn)
    assert {str(table.name) for table in statuses} == {f"public.{name}" for name in QUERIES}
    assert all(REFUSED in (table.waits or "") for table in statuses)
    assert {name for (name,) in copy.ask("select name from pgtrickle.pgt_status()")} == {
        f"public.{name}" for name in QUERIES
    }
    assert status.is_copy(dsn)
    assert status.history(dsn, "totals")


def assert_repaired(copy: Shop) -> None:
    """After the repair all is loaded again, for that reason, and goes on from there."""
    said = repair(copy.database.dsn(TRICKLE))
    assert said[0] == "This copy is now an installation of its own. Stream tables: 3."
    assert len([sentence for sentence in said if "will be loaded again" in sentence]) == 3
    assert not status.is_copy(copy.database.dsn(APP))
    assert copy.ask("select count(frontier), count(upstream_frontier) from pgtrickle.pgt_stream_tables") == [
        (0, 0)
    ]
    reason = "the database is a copy"
    assert copy.refresh() == dict.fromkeys(QUERIES, ("REINITIALIZE", reason))
    copy.is_exact()
    copy.follows_writes()
    assert repair(copy.database.dsn(TRICKLE))[0] == "Nothing is broken."


def test_a_dump_restored_on_another_server_is_refused_until_it_is_repaired(
    shop: Shop, other_server: Server, open_shop: OpenShop
) -> None:
    database = empty_database(other_server, "restored")
    restored(dumped(shop.database), database)
    copy = open_shop(database)
    assert_refused(copy)
    # the application can write, though nothing is captured yet
    copy.run("insert into orders values (101, 1, 'before the repair', 60)")
    assert_repaired(copy)
    shop.follows_writes()


def test_oids_that_belong_to_other_tables_in_a_copy_are_never_acted_on(
    shop: Shop, other_server: Server, open_shop: OpenShop
) -> None:
    database = empty_database(other_server, "foreign_oids")
    run_tool(18, "pg_restore", "-d", database.dsn(SUPERUSER), given=dumped(shop.database, "--format=custom"))
    copy = open_shop(database)
    copy.run("create table victim (id int)", "insert into victim values (1)")
    copy.ask(
        "with tables as (update pgtrickle.pgt_stream_tables set pgt_relid = 'victim'::regclass"
        " where pgt_name = 'totals' returning 1), sources as (update pgtrickle.pgt_dependencies"
        " set source_relid = 'victim'::regclass where source_name = 'customers' returning 1)"
        " select count(*) from tables, sources"
    )
    assert_refused(copy)
    for statement in (
        "select pgtrickle.drop_stream_table('victim')",
        "select pgtrickle.gate_source('victim')",
    ):
        with pytest.raises(psycopg.Error):
            copy.run(statement)
    with database.connect(SUPERUSER) as admin:
        # in a transaction that is rolled back
        admin.execute("select 1")
        said = uninstall(admin, drop_tables=True)
        dropped = {sentence for sentence in said if sentence.startswith("Dropped the table")}
        assert dropped == {f"Dropped the table public.{name}." for name in QUERIES}
        assert admin.execute("select to_regclass('victim') is not null").fetchone() == (True,)
        admin.rollback()
    assert_repaired(copy)
    assert copy.ask("select * from victim") == [(1,)]


def test_a_clone_by_template_is_refused_until_it_is_repaired(shop: Shop, open_shop: OpenShop) -> None:
    with psycopg.connect(shop.database.server.dsn(), autocommit=True) as admin:
        disconnect(admin, shop.database.name)
    database = create_database(shop.database.server, f"{shop.database.name}_clone", shop.database.name)
    try:
        copy = open_shop(database)
        assert_refused(copy)
        assert_repaired(copy)
    finally:
        drop_database(database)


def test_a_running_sidecar_ends_when_its_address_leads_to_a_copy(shop: Shop) -> None:
    server, name = shop.database.server, shop.database.name
    quoted = {
        "name": sql.Identifier(name),
        "clone": sql.Identifier(f"{name}_clone"),
        "old": sql.Identifier(f"{name}_old"),
    }
    with running(shop.engine) as sidecar:
        eventually(lambda: sidecar.has_refreshed("totals"))
        with psycopg.connect(server.dsn(), autocommit=True) as admin:
            for statement in (
                "alter database {name} allow_connections false",
                "create database {clone} template {name}",
                "alter database {name} rename to {old}",
                "alter database {clone} rename to {name}",
            ):
                disconnect(admin, name)
                admin.execute(sql.SQL(statement).format(**quoted))
        assert isinstance(sidecar.failure(), CopiedDatabase)
    drop_database(Database(server, f"{name}_old"))


def test_an_installation_without_stream_tables_can_be_cloned_at_will(database: Database) -> None:
    clone = create_database(database.server, f"{database.name}_clone", database.name)
    try:
        with clone.connect(APP, autocommit=True) as app:
            app.execute("create table orders (id int)")
            app.execute("grant select, trigger on orders to trickle")
            app.execute("select pgtrickle.create_stream_table('s', 'select id from orders')")
            assert app.execute("select pgtrickle.is_copy()").fetchone() == (False,)
    finally:
        drop_database(clone)
