"""`--discover` serves every database of a server with pgtrickle, and notices those that come and go."""

from __future__ import annotations

import time

import psycopg
import pytest

from pgtrickle.model.databases import DiscoveredServer
from tests.fixtures.databases import TRICKLE, create_database, drop_database
from tests.fixtures.waiting import eventually

pytestmark = pytest.mark.slow


def entry(server, *left_out, but=()):
    """The server of all tests, without the databases that are there: a sidecar would write into templates."""
    with psycopg.connect(server.dsn(), autocommit=True) as admin:
        present = {name for (name,) in admin.execute("select datname from pg_database")}
    exclude = present - {one.name for one in but} | {one.name for one in left_out}
    return DiscoveredServer(server.dsn("postgres", TRICKLE), frozenset(exclude))


@pytest.fixture
def discovered(server, run_fleet, templates):
    """A fleet that serves the databases that a test creates."""
    templates.ensure(server)
    return run_fleet(servers=(entry(server),))


def states(served):
    return {member.database.name: member.loop.state.value for member in served.fleet.members()}


def names(served):
    return {member.database.name for member in served.fleet.members()}


def test_databases_that_come_are_served_soon_and_those_that_go_are_let_go(discovered, shop):
    began = time.monotonic()
    new = shop()
    new.write(3)
    new.shows(3)
    # creating the database takes a part of it
    assert time.monotonic() - began < 15
    drop_database(new.database)
    eventually(lambda: new.name not in names(discovered))
    # told after it has left, and perhaps before its lost connection is
    eventually(lambda: any("no longer served: it is not on the server" in t for t in discovered.told(new)))


def test_a_database_is_served_once_pgtrickle_is_installed_and_let_go_when_it_is_removed(
    discovered, server, database_names
):
    from pgtrickle.catalog.install import install, uninstall

    database = create_database(server, next(database_names), "template1")
    try:
        assert database.name not in names(discovered)
        with database.connect(TRICKLE) as connection:
            install(connection)
        eventually(lambda: database.name in names(discovered))
        with database.connect(TRICKLE, autocommit=True) as connection:
            # a sidecar at work could be in its way
            connection.execute("select pgtrickle.set_enabled(false)")
            eventually(lambda: states(discovered)[database.name] == "disabled")
            uninstall(connection)
        eventually(lambda: database.name not in names(discovered))
    finally:
        drop_database(database)


def test_excluded_databases_are_left_alone(server, shop, run_fleet):
    left, served_one = shop(), shop()
    served = run_fleet(servers=(entry(server, but=(served_one,)),))
    served_one.write(1)
    served_one.shows(1)
    assert left.name not in names(served)


def test_databases_past_the_limit_are_named_and_served_when_there_is_room(server, shop, run_fleet):
    shops = [shop(), shop()]
    served = run_fleet(servers=(entry(server, but=shops),), max_databases=1)
    eventually(
        lambda: any("its limit" in (event.error.message if event.error else "") for event in served.events)
    )
    (first,) = served.fleet.members()
    served_first, waiting = sorted(shops, key=lambda one: one.name != first.database.name)
    drop_database(served_first.database)
    waiting.write(2)
    waiting.shows(2)


def test_a_database_that_was_given_by_its_address_is_not_served_twice(server, shop, run_fleet):
    given, found = shop(), shop()
    served = run_fleet(given.served(), servers=(entry(server, but=(given, found)),))
    found.write(1)
    found.shows(1)
    given.write(2)
    given.shows(2)
    assert [name for name in names(served) if given.name in name] == [given.name]
