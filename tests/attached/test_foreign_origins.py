"""A foreign table whose origin is served is followed by its changes; without that it stays compared."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pytest

from pgtrickle.commands import attached as commands
from pgtrickle.embedded import SUPERUSER
from pgtrickle.model.databases import DeclaredOrigin
from tests.databases.conftest import run_fleet, shop
from tests.fixtures.databases import APP, TRICKLE
from tests.fixtures.servers import SYSTEM
from tests.fixtures.waiting import eventually

__all__ = ["run_fleet", "shop"]

# the embedded PostgreSQL ships no foreign data wrapper
pytestmark = [pytest.mark.on_postgres(SYSTEM), pytest.mark.slow]

QUERY = "select id, amount from public.far"


@pytest.fixture
def pair(shop, server):
    """A shop, and another database with a foreign table that leads to its orders."""
    there, here = shop(), shop()
    with closing(here.database.connect(SUPERUSER, autocommit=True)) as admin:
        admin.execute(
            "create extension postgres_fdw;"
            "create server there foreign data wrapper postgres_fdw"
            f" options (host '127.0.0.1', port '{server.port}', dbname '{there.name}');"
            "create user mapping for public server there"
            f" options (user '{APP}', password '{server.password}');"
            "create foreign table public.far(id int, amount int) server there"
            " options (schema_name 'public', table_name 'orders');"
            f"grant select on public.far to {APP}, {TRICKLE}"
        )
    here.app.execute("select pgtrickle.create_stream_table('near', %s, '100ms', 'FULL')", (QUERY,))
    return there, here


def source_type(here) -> str:
    row = here.app.execute(
        "select source_type from pgtrickle.list_sources('near') where source_type <> 'view'"
    ).fetchone()
    return str(row[0])


def is_equal(there, here) -> bool:
    wanted = sorted(there.app.execute("select id, amount from orders").fetchall())
    return sorted(here.app.execute("select * from near").fetchall()) == wanted


def follows(there, here) -> None:
    there.app.execute("insert into orders(amount) values (1), (2), (3)")
    eventually(lambda: is_equal(there, here), seconds=40)
    there.app.execute(
        "update orders set amount = amount * 10 where amount > 1; delete from orders where id = 1"
    )
    eventually(lambda: is_equal(there, here), seconds=40)


def test_with_the_broker_it_is_followed_and_without_it_is_compared(pair, run_fleet):
    there, here = pair
    run_fleet(there.served(), here.served(), enable_refresh_broker=True)
    eventually(lambda: source_type(here) == "attached_table", seconds=40)
    follows(there, here)


def test_it_stays_compared_by_default(pair, run_fleet):
    there, here = pair
    run_fleet(there.served(), here.served())
    follows(there, here)
    assert source_type(here) == "foreign_table"


@pytest.mark.parametrize(
    "change",
    [
        "alter table public.far owner to app",
        "alter foreign table public.far alter column amount type bigint",
        "alter foreign table public.far alter column amount options (column_name 'amount')",
        "alter server there options (set dbname 'another')",
    ],
)
def test_a_table_that_is_not_the_same_or_not_trusted_stays_compared(pair, run_fleet, change):
    there, here = pair
    with closing(here.database.connect(SUPERUSER, autocommit=True)) as admin:
        here.app.execute("select pgtrickle.drop_stream_table('near')")
        admin.execute("grant create on schema public to app")
        admin.execute(change)
        if "another" not in change:
            here.app.execute("select pgtrickle.create_stream_table('near', %s, '100ms', 'FULL')", (QUERY,))
            served = run_fleet(there.served(), here.served(), enable_refresh_broker=True)
            follows(there, here)
            member = served.member(here)
            if "bigint" in change:
                # that it differs is only found out in the other database
                eventually(lambda: bool(member.engine.attached._released))
            eventually(lambda: source_type(here) == "foreign_table")
            assert member.engine.attached.adopt_origins() == 0, "it is not tried again and again"
        else:
            rows = admin.execute("select dbname from pgtrickle_internal.foreign_origins()").fetchall()
            assert rows == []


def test_an_origin_that_is_declared_is_followed_without_the_broker(pair, run_fleet):
    there, here = pair
    declared = DeclaredOrigin("public", "far", there.name, "public", "orders")
    run_fleet(there.served(), replace(here.served(), origins=(declared,)))
    eventually(lambda: source_type(here) == "attached_table", seconds=40)
    follows(there, here)


def test_detaching_compares_it_again(pair, run_fleet):
    there, here = pair
    served = run_fleet(there.served(), here.served(), enable_refresh_broker=True)
    eventually(lambda: source_type(here) == "attached_table", seconds=40)
    follows(there, here)
    with closing(there.database.connect(TRICKLE, autocommit=True)) as origin:
        assert origin.execute("select count(*) from pgtrickle.remote_readers").fetchone() == (1,)
    served.fleet.broker = None
    for member in served.fleet.members():
        member.engine.attached.broker = None
    (status,) = commands.attached(here.database.dsn())
    commands.detach(here.database.dsn(), status.alias)
    assert source_type(here) == "foreign_table"
    follows(there, here)
    with closing(there.database.connect(TRICKLE, autocommit=True)) as origin:
        eventually(lambda: origin.execute("select count(*) from pgtrickle.remote_readers").fetchone() == (0,))


def test_a_replicated_copy_is_itself_what_a_query_reads(shop, run_fleet):
    """It may lag behind its origin, or hold only some of its rows."""
    there, here = shop(), shop()
    here.app.execute("create table copied (id int primary key, amount int)")
    here.app.execute("grant select, trigger on copied to trickle")
    here.app.execute(
        "select pgtrickle.create_stream_table('near', 'select id, amount from copied', '100ms', 'FULL')"
    )
    there.app.execute("insert into orders(amount) values (1), (2)")
    run_fleet(there.served(), here.served(), enable_refresh_broker=True)
    here.app.execute("insert into copied values (7, 7)")
    eventually(lambda: here.app.execute("select * from near").fetchall() == [(7, 7)], seconds=40)
    assert source_type(here) == "table"


def test_a_replicated_copy_whose_origin_is_declared_means_the_origin(shop, run_fleet):
    there, here = shop(), shop()
    here.app.execute("create table copied (id int primary key, amount int)")
    here.app.execute("grant select, trigger on copied to trickle")
    here.app.execute("insert into copied values (99, 99)")
    here.app.execute(
        "select pgtrickle.create_stream_table('near', 'select id, amount from copied', '100ms', 'FULL')"
    )
    declared = DeclaredOrigin("public", "copied", there.name, "public", "orders")
    run_fleet(there.served(), replace(here.served(), origins=(declared,)))
    eventually(lambda: source_type(here) == "attached_table", seconds=40)
    follows(there, here)
