"""Dumps in every format, restored in every way: refused until the repair, and right after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pgtrickle.catalog.install import install, uninstall
from pgtrickle.commands import status
from pgtrickle.commands.refresh import refresh
from pgtrickle.commands.repair import repair
from pgtrickle.embedded import SUPERUSER, Server
from pgtrickle.model.errors import CopiedDatabase, NotInstalled
from pgtrickle.refresh.engine import Engine
from tests.fixtures.databases import APP, TRICKLE, Database, create_database, drop_database
from tests.fixtures.sidecars import running
from tests.fixtures.waiting import eventually
from tests.recovery.conftest import OpenShop, Shop, run_tool

NewDatabase = Callable[[], Database]


@pytest.fixture
def new_database(server: Server, database_names: Iterator[str]) -> Iterator[NewDatabase]:
    """Empty databases on the server of the test."""
    made: list[Database] = []

    def make() -> Database:
        made.append(create_database(server, f"{next(database_names)}_restored", "template0"))
        return made[-1]

    yield make
    for database in made:
        drop_database(database)


def dump(shop: Shop, path: Path, *options: str) -> str:
    run_tool(18, "pg_dump", *options, "-f", str(path), f"--dbname={shop.database.dsn(SUPERUSER)}")
    return str(path)


def restore(path: str, database: Database, *options: str, role: str = SUPERUSER) -> None:
    run_tool(18, "pg_restore", *options, "-d", database.dsn(role), path)


def restore_over_a_sidecar(path: str, database: Database, *options: str) -> None:
    """Restore where a sidecar reads: in a deadlock of both, the sidecar gives up first and tries again."""
    patient = f"{database.dsn(SUPERUSER)}?options=-c%20deadlock_timeout%3D60s"
    run_tool(18, "pg_restore", *options, "-d", patient, path)


def goes_on(copy: Shop, role: str = TRICKLE) -> None:
    repair(copy.database.dsn(role))
    copy.refresh()
    copy.is_exact()
    copy.follows_writes()


def test_a_directory_is_dumped_and_restored_by_several_processes(
    shop: Shop, new_database: NewDatabase, open_shop: OpenShop, tmp_path: Path
) -> None:
    path = dump(shop, tmp_path / "dump", "--format=directory", "--jobs=2")
    copy = open_shop(new_database())
    restore(path, copy.database, "--jobs=2")
    goes_on(copy)


def test_a_restore_section_by_section_is_refused_until_it_is_complete(
    shop: Shop, new_database: NewDatabase, open_shop: OpenShop, tmp_path: Path
) -> None:
    path = dump(shop, tmp_path / "dump", "--format=custom")
    copy = open_shop(new_database())
    restore(path, copy.database, "--section=pre-data")
    for section in ("data", "post-data"):
        restore(path, copy.database, f"--section={section}")
        with pytest.raises(CopiedDatabase):
            refresh(copy.engine, "totals")
    goes_on(copy)


def test_a_restore_over_the_database_ends_its_sidecar(shop: Shop, tmp_path: Path) -> None:
    path = dump(shop, tmp_path / "dump", "--format=custom")
    with running(shop.engine) as sidecar:
        eventually(lambda: sidecar.has_refreshed("totals"))
        shop.run("delete from orders where id = 5")
        restore_over_a_sidecar(path, shop.database, "--clean", "--if-exists")
        # a poll between the drop of the old catalog and the end of the restore finds none
        assert isinstance(sidecar.failure(), CopiedDatabase | NotInstalled)
    with running(shop.engine) as sidecar:
        assert isinstance(sidecar.failure(), CopiedDatabase)
    goes_on(shop)


def test_another_role_owns_what_it_restores_without_owners_and_privileges(
    shop: Shop, new_database: NewDatabase, tmp_path: Path
) -> None:
    path = dump(shop, tmp_path / "dump", "--format=custom")
    database = new_database()
    with database.connect(SUPERUSER, autocommit=True) as admin:
        admin.execute(
            f"grant create on database {database.name} to app; grant create on schema public to app"
        )
    restore(path, database, "--no-owner", "--no-privileges", role=APP)
    engine = Engine(database.dsn(APP), lambda: shop.engine.spark)
    try:
        goes_on(Shop(database, engine), APP)
    finally:
        engine._spark = None
        engine.close()


def test_a_restore_of_the_catalog_alone_says_what_is_missing_and_can_be_removed(
    shop: Shop, new_database: NewDatabase, tmp_path: Path
) -> None:
    path = dump(shop, tmp_path / "dump", "--format=custom", "--schema=pgtrickle*")
    database = new_database()
    restore(path, database)
    said = repair(database.dsn(SUPERUSER))
    assert len([sentence for sentence in said if "is not here" in sentence]) == 3
    assert all("is not here" in (table.last_error or "") for table in status.table_statuses(database.dsn()))
    with database.connect(SUPERUSER) as admin:
        uninstall(admin, drop_tables=True)


def test_a_restore_of_one_schema_of_the_catalog_is_made_whole_by_install(
    shop: Shop, new_database: NewDatabase, tmp_path: Path
) -> None:
    """The stream tables did not come along, and neither did the helpers."""
    path = dump(shop, tmp_path / "dump", "--format=custom", "--schema=pgtrickle")
    database = new_database()
    with pytest.raises(AssertionError, match="pgtrickle_internal"):
        restore(path, database)
    with database.connect(SUPERUSER) as admin:
        said = install(admin)
    assert "Parts of the catalog were missing: 0 stream tables were kept and are recomputed." in said
    assert status.table_statuses(database.dsn()) == []
    assert repair(database.dsn())[0] == "Nothing is broken."


def test_rows_restored_into_a_source_with_its_triggers_off_are_noticed_by_the_sidecar(
    shop: Shop, tmp_path: Path
) -> None:
    options = ("--format=custom", "--data-only", "--table=orders")
    path = dump(shop, tmp_path / "dump", *options)
    shop.run("delete from orders where id > 3")
    with running(shop.engine) as sidecar:
        eventually(lambda: shop.ask("select sum(orders) from totals") == [(2,)])
        sidecar.events.clear()
        shop.run("delete from orders")
        restore(path, shop.database, "--data-only", "--disable-triggers")
        eventually(lambda: shop.ask("select sum(orders) from totals") == [(20,)], seconds=120)
        eventually(lambda: shop.ask("select sum(regions) from regions") == [(4,)], seconds=120)
        eventually(lambda: shop.ask("select count(*) from large where id = 20") == [(1,)], seconds=120)
    shop.refresh()
    shop.is_exact()
    shop.follows_writes()
    assert shop.ask("select sum(repairs) from pgtrickle.pgt_stream_tables") == [(0,)]
