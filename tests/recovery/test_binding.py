"""Tables that were dropped and created again are bound by name, when somebody asks for it."""

from __future__ import annotations

import psycopg
import pytest

from pgtrickle.catalog.dependencies import forget_dropped
from pgtrickle.catalog.install import uninstall
from pgtrickle.commands import status
from pgtrickle.commands.refresh import refresh
from pgtrickle.commands.repair import repair
from pgtrickle.embedded import SUPERUSER
from pgtrickle.model.errors import CommandRefused, SourceChanged
from pgtrickle.model.stream_table import Status
from tests.fixtures.databases import APP, TRICKLE
from tests.recovery.conftest import Shop, run_tool

_AGAIN = (
    "drop table orders",
    "create table orders (region text, id int primary key, customer int, amount int)",
    "grant select, trigger on orders to trickle",
    "insert into orders values ('again', 1, 1, 10), ('again', 2, 2, 20)",
)


def test_a_source_that_was_created_again_is_bound_by_repair(shop: Shop) -> None:
    shop.run(*_AGAIN)
    with pytest.raises(SourceChanged, match=r"run `repair\(\)`"):
        refresh(shop.engine, "totals")
    dsn = shop.database.dsn(APP)
    repair(dsn, "totals")
    said = repair(shop.database.dsn(TRICKLE))
    assert said[0] == "public.large will be loaded again: a source was created again."
    shop.refresh()
    shop.is_exact()
    shop.run("insert into orders values ('more', 3, 1, 30)")
    shop.refresh()
    shop.is_exact()


def test_a_restore_of_one_source_is_bound_by_repair(shop: Shop) -> None:
    dsn = shop.database.dsn(SUPERUSER)
    dump = run_tool(18, "pg_dump", "--format=custom", "--table=orders", f"--dbname={dsn}")
    shop.run("delete from orders where id < 10")
    shop.refresh()
    run_tool(18, "pg_restore", "--clean", "-d", dsn, given=dump)
    said = repair(dsn)
    assert len(said) == 2
    shop.refresh()
    shop.is_exact()
    shop.follows_writes()


def test_a_restore_of_one_stream_table_is_bound_by_repair(shop: Shop, connection: psycopg.Connection) -> None:
    dsn = shop.database.dsn(SUPERUSER)
    dump = run_tool(18, "pg_dump", "--format=custom", "--table=large", f"--dbname={dsn}")
    run_tool(18, "pg_restore", "--clean", "-d", dsn, given=dump)
    # the sidecar does not take it for dropped
    assert forget_dropped(connection) == []
    connection.commit()
    found = status.table_status(shop.database.dsn(APP), "large")
    assert found.status is Status.ERROR
    assert "pgtrickle.repair_stream_table('public.large')" in (found.last_error or "")
    with shop.database.connect(APP) as app, pytest.raises(psycopg.Error, match="dropped and created again"):
        app.execute("select pgtrickle.alter_stream_table('large', schedule => '1h')")
    assert repair(dsn)[0] == "public.large will be loaded again: its table was created again."
    shop.refresh()
    shop.is_exact()
    shop.follows_writes()


def test_a_table_that_is_not_ours_stays_when_its_stream_table_is_dropped(shop: Shop) -> None:
    shop.run("drop table regions", "create table regions (id int)", "insert into regions values (1)")
    with shop.database.connect(APP, autocommit=True) as app:
        said: list[str] = []
        app.add_notice_handler(lambda notice: said.append(notice.message_primary or ""))
        app.execute("select pgtrickle.drop_stream_table('regions')")
    assert said == ["table public.regions was not dropped: pgtrickle did not create it"]
    assert shop.ask("select * from regions") == [(1,)]


def test_a_table_that_inherits_from_a_stream_table_is_never_dropped_with_it(
    shop: Shop, admin: psycopg.Connection
) -> None:
    shop.run("create table mine (note text) inherits (regions)")
    admin.execute("alter table mine disable trigger all")
    admin.execute("insert into mine values (1, 2, 'mine')")
    with pytest.raises(CommandRefused, match="mine inherits from the stream table regions"):
        uninstall(admin, drop_tables=True)
    assert shop.ask("select note from mine") == [("mine",)]
    with (
        shop.database.connect(APP, autocommit=True) as app,
        pytest.raises(psycopg.Error, match="depend on it"),
    ):
        app.execute("select pgtrickle.drop_stream_table('regions')")
    shop.run("alter table mine no inherit regions")
    uninstall(admin, drop_tables=True)
    assert shop.ask("select note from mine") == [("mine",)]
    assert shop.ask("select to_regclass('regions') is null and to_regclass('totals') is null") == [(True,)]


def test_the_owner_binds_a_table_without_a_guard(shop: Shop) -> None:
    shop.run("create table kept as table large", "drop table large", "alter table kept rename to large")
    said = repair(shop.database.dsn(TRICKLE))
    assert said == [
        "Table public.large has no trigger pgtrickle_guard, so it may be another table. If it is the stream "
        "table, its owner binds it: select pgtrickle.repair_stream_table('public.large')."
    ]
    repair(shop.database.dsn(APP), "large")
    shop.refresh()
    shop.is_exact()
    shop.follows_writes()
