"""Whole servers that are copied, promoted and upgraded."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import psycopg
import pytest

from pgtrickle.commands import status
from pgtrickle.commands.repair import repair
from pgtrickle.commands.run import run
from pgtrickle.embedded import SUPERUSER, Server, Stop
from pgtrickle.model.errors import CopiedDatabase, ReadOnlyServer
from pgtrickle.scheduler.service.maintenance_tasks import tidy
from tests.fixtures.databases import APP, TEMPLATE, Database, create_database, prepare
from tests.fixtures.servers import EMBEDDED, SYSTEM, binaries, new_server
from tests.fixtures.sidecars import running
from tests.fixtures.waiting import eventually
from tests.recovery.clusters import copied_server, give_to_server
from tests.recovery.conftest import QUERIES, OpenShop, Shop, build, leave_changes


@pytest.fixture
def own_shop(own_server: Server, open_shop: OpenShop) -> Shop:
    """The shop on a server that may be stopped, with changes that no refresh has followed yet."""
    return shop_on(own_server, open_shop)


def shop_on(server: Server, open_shop: OpenShop) -> Shop:
    prepare(server)
    database = create_database(server, "shop", TEMPLATE)
    build(database)
    shop = open_shop(database)
    shop.refresh()
    with database.connect(APP, autocommit=True) as app:
        leave_changes(app)
    return shop


def promote(server: Server) -> None:
    with psycopg.connect(server.dsn(), autocommit=True) as admin:
        assert admin.execute("select pg_promote(true, 60)").fetchone() == (True,)


def test_a_promoted_copy_goes_on_beside_the_original_and_in_its_place(
    own_server: Server, own_shop: Shop, open_shop: OpenShop, pg_version: int
) -> None:
    own_server.stop()
    with copied_server(own_server, pg_version) as standby:
        own_server.start()
        copy = open_shop(Database(standby, "shop"))
        # a standby can be read, and nothing else
        assert {str(table.name) for table in status.table_statuses(copy.database.dsn(APP))} == {
            f"public.{name}" for name in QUERIES
        }
        with pytest.raises(ReadOnlyServer):
            run(copy.engine, threading.Event())
        promote(standby)
        # beside the original: the same OIDs and transaction ids, each with changes of its own
        assert not status.is_copy(copy.database.dsn(APP))
        copy.run("insert into orders values (200, 1, 'only here', 7)")
        copy.refresh()
        copy.is_exact()
        with running(own_shop.engine) as sidecar:
            own_shop.run("update customers set name = 'lost in the failover'")
            eventually(lambda: own_shop.ask("select count(*) from large where name like 'lost%'") != [(0,)])
            # in its place: what the original committed after the copy was made is lost, also from memory
            own_server.stop(Stop.IMMEDIATE)
            standby.stop()
            standby.port = own_server.port
            standby.start()
            own_shop.run("insert into orders values (201, 2, 'after the failover', 8)")
            wanted = "select count(*) from large where id = 201 and name = 'Grace'"
            eventually(lambda: own_shop.ask(wanted) == [(1,)])
            assert sidecar.errors()
        own_shop.refresh()
        own_shop.is_exact()
        own_shop.follows_writes()
        assert own_shop.ask("select sum(repairs) from pgtrickle.pgt_stream_tables") == [(0,)]


def test_counters_that_were_moved_on_lose_nothing_and_one_that_was_set_back_makes_a_copy(
    own_server: Server, own_shop: Shop
) -> None:
    """Another epoch leaves all rows visible, and gives other transaction ids to what is written."""
    counted = "select pg_snapshot_xmax(pg_current_snapshot())::text::bigint >> 32"
    assert own_shop.ask(counted) == [(0,)]
    reset_counters(own_server, "--epoch=1", "--next-oid=3000000000")
    assert own_shop.ask(counted) == [(1,)]
    assert not status.is_copy(own_shop.database.dsn(APP))
    own_shop.refresh()
    own_shop.is_exact()
    own_shop.follows_writes()
    # OIDs beyond those that a signed integer can hold
    own_shop.run(
        "create table another (id int primary key)",
        "grant select, trigger on another to trickle",
        "insert into another values (1)",
        "select pgtrickle.create_stream_table('above', 'select id from another')",
    )
    assert own_shop.refresh()["above"][0] == "REINITIALIZE"
    own_shop.run("insert into another values (2)")
    assert own_shop.refresh()["above"][0] == "DIFFERENTIAL"
    assert own_shop.ask("select id from above order by 1") == [(1,), (2,)]
    assert own_shop.ask("select 'above'::regclass::oid::bigint > 3000000000") == [(True,)]
    own_shop.run("select pgtrickle.drop_stream_table('above')", "drop table another")
    with own_shop.engine.connection() as connection:
        tidy(connection)
        connection.commit()
    reset_counters(own_server, "--epoch=0")
    own_shop.run("insert into orders values (300, 1, 'hidden by the frontier', 1)")
    assert status.is_copy(own_shop.database.dsn(APP))
    with pytest.raises(CopiedDatabase):
        own_shop.refresh()
    repair(own_shop.database.dsn(SUPERUSER))
    own_shop.refresh()
    own_shop.is_exact()
    own_shop.run("delete from orders where id = 300", "delete from orders where id = 1000")
    own_shop.refresh()
    own_shop.is_exact()


def reset_counters(server: Server, *options: str) -> None:
    """Let a server count transactions or OIDs from elsewhere."""
    server.stop()
    run_as_server(server, [server._program("pg_resetwal"), *options, "-D", str(server.directory / "data")])
    server.start()


def test_pg_upgrade_makes_a_copy_that_repair_binds(open_shop: OpenShop) -> None:
    with new_server(SYSTEM) as old, new_server(EMBEDDED) as new:
        shop_on(old, open_shop)
        for server in (old, new):
            server.stop()
        upgrade(old, new)
        new.start()
        copy = open_shop(Database(new, "shop"))
        with pytest.raises(CopiedDatabase):
            copy.refresh()
        repair(copy.database.dsn(SUPERUSER))
        copy.refresh()
        copy.is_exact()
        copy.follows_writes()


def upgrade(old: Server, new: Server) -> None:
    """Run pg_upgrade from one stopped server to the other, which then has what the old one had."""
    data, password = new.directory / "data", new.directory / "password"
    shutil.rmtree(data)
    shutil.copy2(old.directory / "password", password)
    data.mkdir(mode=0o700)
    give_to_server(data, password)
    # the new server has checksums unless it is told otherwise, the old one has none
    run_as_server(
        new,
        [
            *(new._program("initdb"), "-D", str(data), "-U", SUPERUSER, f"--pwfile={password}"),
            *("--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"),
            "--no-data-checksums",
        ],
    )
    scratch = new.directory / "upgrade"
    scratch.mkdir()
    passwords = scratch / "pgpass"
    passwords.write_text(f"*:*:*:*:{old.password}\n")
    passwords.chmod(0o600)
    give_to_server(scratch)
    command = [
        *(new._program("pg_upgrade"), "-U", SUPERUSER, "-b", str(binaries(SYSTEM))),
        *("-B", str(Path(new._program("postgres")).parent), "-d", str(old.directory / "data")),
        *("-D", str(data), "-s", str(scratch), "--no-sync"),
    ]
    quoted = " ".join(f"'{part}'" for part in command)
    run_as_server(new, ["sh", "-c", f"cd '{scratch}' && PGPASSFILE='{passwords}' exec {quoted}"])


def run_as_server(server: Server, command: list[str]) -> None:
    done = server._run(command)
    assert done.returncode == 0, done.stdout + done.stderr
