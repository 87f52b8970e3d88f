"""A database of somebody else that looks like an installation runs no code with the rights of its reader."""

from __future__ import annotations

import psycopg
import pytest

from pgtrickle.interfaces.cli.application import run
from pgtrickle.model.databases import ServedDatabase
from tests.databases.test_discovery import entry
from tests.fixtures.databases import APP, TRICKLE, create_database, drop_database
from tests.fixtures.waiting import eventually

pytestmark = pytest.mark.slow

TRAP = """
create schema pgtrickle;
create table public.caught (who text);
grant insert, select on public.caught to public;
grant usage on schema pgtrickle to public;
create function public.spring() returns integer language plpgsql as
    'begin insert into public.caught values (current_user); return 1; end';
create view pgtrickle.pgt_schema_version as select public.spring() as version;
grant select on pgtrickle.pgt_schema_version to public;
"""


@pytest.fixture
def trap(server, templates, database_names):
    """A database of `app`, in which reading the version of the catalog calls a function of `app`."""
    templates.ensure(server)
    database = create_database(server, next(database_names), "template1")
    with psycopg.connect(server.dsn(), autocommit=True) as admin:
        admin.execute(f"alter database {database.name} owner to {APP}")
    with database.connect(APP, autocommit=True) as attacker:
        attacker.execute(TRAP)
    yield database
    with database.connect(APP) as attacker:
        caught = attacker.execute("select who from public.caught").fetchall()
    drop_database(database)
    assert caught == []


def test_discovery_reads_nothing_in_it(trap, shop, server, run_fleet):
    other = shop()
    served = run_fleet(servers=(entry(server, but=(trap, other)),))
    other.write(1)
    other.shows(1)
    # it has been asked by now, too: new databases come first
    eventually(lambda: any(event.database == other.name for event in served.events))
    assert trap.name not in {member.database.name for member in served.fleet.members()}


def test_a_fleet_that_is_told_to_serve_it_refuses(trap, run_fleet):
    served = run_fleet(ServedDatabase(trap.name, trap.dsn()))
    eventually(lambda: any(event.error is not None for event in served.events))
    (error,) = {event.error.code for event in served.events if event.error is not None}
    assert error == "PGT-A002"


def test_listing_all_databases_reads_nothing_in_it(trap, shop, capsys):
    other = shop()
    assert run(["list", "--all", "--dsn", other.database.dsn(TRICKLE)]) == 0
    screen = capsys.readouterr().out
    assert other.name in screen
    assert trap.name not in screen
