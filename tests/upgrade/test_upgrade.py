"""Version 0.1.0 is upgraded in place, with live stream tables and changes that nobody has followed yet."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from pgtrickle.catalog.identity import VERSION
from pgtrickle.catalog.install import check_installed, install
from pgtrickle.commands.repair import repair
from pgtrickle.commands.run import run
from pgtrickle.embedded import SUPERUSER, Server
from pgtrickle.model.errors import NotInstalled, PgTrickleError
from tests.fixtures.databases import (
    APP,
    TRICKLE,
    Database,
    Templates,
    create_database,
    drop_database,
)
from tests.fixtures.sidecars import running
from tests.fixtures.waiting import eventually
from tests.recovery.conftest import OpenShop, build, leave_changes

pytestmark = pytest.mark.every_postgres

HERE = Path(__file__).parent

# what a refresh of version 0.1.0 commits, beside the state that it keeps
_LOAD = """
set pgtrickle.applying = on;
insert into totals select region, count(*), sum(amount) from orders group by region;
insert into large select o.id, amount, name from orders o join customers c on c.id = customer
    where amount > 5;
insert into regions select count(*), max(amount) from totals;
update pgtrickle.pgt_stream_tables set status = 'ACTIVE', is_populated = true,
    effective_refresh_mode = 'DIFFERENTIAL', follows_clock = false, last_refresh_at = clock_timestamp(),
    data_timestamp = now();
"""
# the frontier is of a later transaction, which sees all of the above
_FRONTIERS = """
update pgtrickle.pgt_stream_tables s set frontier = pg_current_snapshot(),
    upstream_frontier = case when s.pgt_name = 'regions' then pg_current_snapshot() end;
"""


@pytest.fixture
def old(server: Server, templates: Templates, database_names: Iterator[str]) -> Iterator[Database]:
    """A database with version 0.1.0, loaded stream tables, and captured changes."""
    templates.ensure(server)
    database = create_database(server, f"{next(database_names)}_old", "template0")
    with database.connect(SUPERUSER, autocommit=True) as admin:
        admin.execute("grant create on schema public to app")
        admin.execute((HERE / "catalog_0_1_0.sql").read_text())
    build(database)
    with database.connect(TRICKLE, autocommit=True) as sidecar:
        sidecar.execute(_LOAD)
        sidecar.execute((HERE / "state_0_1_0.sql").read_text())
        sidecar.execute(_FRONTIERS)
    with database.connect(APP, autocommit=True) as app:
        leave_changes(app)
    yield database
    drop_database(database)


def upgraded(database: Database) -> list[str]:
    with database.connect(TRICKLE) as connection:
        return install(connection)


def test_an_upgrade_in_place_loses_no_change(old: Database, open_shop: OpenShop) -> None:
    shop = open_shop(old)
    with old.connect(TRICKLE) as connection, pytest.raises(NotInstalled, match=r"run `install\(\)`"):
        check_installed(connection)
    with pytest.raises(NotInstalled, match=r"run `install\(\)`"):
        run(shop.engine, threading.Event())
    said = upgraded(old)
    assert "Applied migration 0010_identity." in said
    assert "copy" not in " ".join(said)
    assert shop.ask("select count(*) from pgtrickle.pgt_stream_tables where needs_reinit") == [(0,)]
    actions = {name: action for name, (action, _) in shop.refresh().items()}
    assert actions == {"totals": "DIFFERENTIAL", "large": "DIFFERENTIAL", "regions": "DIFFERENTIAL"}
    shop.is_exact()
    shop.follows_writes()
    # the functions of the old version are gone where they have other arguments now
    assert (
        shop.ask(
            "select proname from pg_proc where pronamespace in ('pgtrickle'::regnamespace,"
            " 'pgtrickle_internal'::regnamespace)"
            " group by proname having count(*) > 1"
        )
        == []
    )


def test_an_upgrade_that_is_killed_half_way_leaves_the_old_version_and_can_be_repeated(
    old: Database, open_shop: OpenShop
) -> None:
    shop = open_shop(old)
    refused: list[BaseException] = []

    def upgrade() -> None:
        try:
            upgraded(old)
        except PgTrickleError as error:
            refused.append(error)

    before = shop.ask("select version from pgtrickle.pgt_schema_version order by 1")
    installing = threading.Thread(target=upgrade)
    with old.connect(APP) as reader:
        # some migration alters what is being read here, and waits
        reader.execute("select count(*) from pgtrickle.stream_tables_info")
        installing.start()
        waiting = (
            "select pid from pg_stat_activity where datname = current_database() and usename = 'trickle'"
            " and wait_event_type = 'Lock'"
        )
        eventually(lambda: shop.ask(waiting) != [])
        shop.ask(f"select pg_terminate_backend(pid, 10000) from ({waiting}) w")
        installing.join()
    assert refused
    assert shop.ask("select version from pgtrickle.pgt_schema_version order by 1") == before
    shop.run("update orders set amount = amount + 1 where id = 9")
    upgraded(old)
    shop.refresh()
    shop.is_exact()
    shop.follows_writes()


def test_installations_at_the_same_time_upgrade_once(old: Database, open_shop: OpenShop) -> None:
    said: list[list[str]] = []
    threads = [threading.Thread(target=lambda: said.append(upgraded(old))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    applied = [len([line for line in lines if line.startswith("Applied")]) for lines in said]
    assert sorted(applied)[:2] == [0, 0]
    assert len(said) == 3
    shop = open_shop(old)
    shop.refresh()
    shop.is_exact()


def test_an_old_dump_that_was_restored_and_then_upgraded_is_a_copy(
    old: Database, open_shop: OpenShop
) -> None:
    shop = open_shop(old)
    # as in a restored dump: the tables carry triggers that belong to other OIDs
    shop.ask(
        "with moved as (update pgtrickle.pgt_stream_tables set pgt_relid = (pgt_relid::bigint + 1000000)::oid"
        " returning 1) select count(*) from moved"
    )
    assert upgraded(old)[-1] == "This database is a copy: run select * from pgtrickle.repair()."
    repair(old.dsn())
    shop.refresh()
    shop.is_exact()
    shop.follows_writes()


def test_a_sidecar_of_version_0_1_0_is_told_to_stop_and_leaves_no_trace(old: Database) -> None:
    upgraded(old)
    with old.connect(TRICKLE, autocommit=True) as sidecar:
        # what it sends to claim a stream table
        with pytest.raises(psycopg.Error, match="older than the catalog"):
            sidecar.execute(
                "select pgt_id, (select pgtrickle_internal.may_start()) from pgtrickle.pgt_stream_tables"
                " where pgt_id = any (array[1]::bigint[]) for no key update skip locked"
            )
        assert sidecar.execute(
            "select sum(consecutive_errors) from pgtrickle.pgt_stream_tables"
        ).fetchone() == (0,)


def test_a_running_sidecar_ends_when_a_newer_version_is_installed(old: Database, open_shop: OpenShop) -> None:
    upgraded(old)
    shop = open_shop(old)
    with running(shop.engine) as sidecar:
        sidecar.looks_again(1)
        shop.ask(f"insert into pgtrickle.pgt_schema_version (version) values ({VERSION + 1}) returning 1")
        failure = sidecar.failure()
    assert isinstance(failure, NotInstalled)
    assert "newer than version" in str(failure)
